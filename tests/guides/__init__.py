"""The examples of the guides in docs/ run as they are printed."""
