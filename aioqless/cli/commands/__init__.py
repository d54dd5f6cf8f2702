"""The commands; a command is imported by itself if its module has its name."""
