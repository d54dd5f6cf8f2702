"""The commands, one file per group; main.py lists them."""
