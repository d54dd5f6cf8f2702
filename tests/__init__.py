"""What the project promises, as sentences about its behaviour."""
