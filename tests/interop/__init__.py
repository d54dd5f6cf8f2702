"""Interoperability with a live qless: the Python client of PyPI on the same Redis.

The client is of 2018; its script is also that of the Ruby client.
"""
