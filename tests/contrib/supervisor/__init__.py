"""The supervisor alone, with minimal child processes."""
