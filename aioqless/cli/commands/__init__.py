"""The commands, one file per group; command_index.py lists them."""
