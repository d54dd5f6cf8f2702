"""The tests: what the project promises, as sentences about its behavior."""
