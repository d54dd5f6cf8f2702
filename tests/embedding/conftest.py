"""Hosts for these tests, and what their workers log."""

from tests.worker.conftest import lines

__all__ = ["lines"]
