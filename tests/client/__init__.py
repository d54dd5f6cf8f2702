"""The public surface, against a real Redis."""
