"""The commands of the command line: sets and set."""
