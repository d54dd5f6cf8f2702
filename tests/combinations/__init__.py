"""Combinations of two features."""
