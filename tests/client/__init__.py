"""The public API, against a real Redis."""
