"""What a stranger may put into Redis, into a call, or on a command line: refused by name, or
harmless."""
