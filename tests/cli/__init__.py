"""The command line: real processes, signals and exit codes."""
