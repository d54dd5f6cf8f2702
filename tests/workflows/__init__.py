"""Results, progress, waiting, and jobs that depend on each other."""
