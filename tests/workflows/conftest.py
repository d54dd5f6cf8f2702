"""Workers for these tests."""

from tests.worker.conftest import idle, lines, work

__all__ = ["idle", "lines", "work"]
