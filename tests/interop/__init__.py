"""Beside a live qless: the Python client of 2018, as PyPI has it, with the script that Ruby's has
too, on the same Redis."""
