"""The commands of the queue, one file per group."""
