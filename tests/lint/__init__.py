"""Checks of text that ruff and import-linter can't make, a script each."""
