"""Tests without Redis."""
