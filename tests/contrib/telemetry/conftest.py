"""Workers with what other tools hear of them."""

from tests.worker.conftest import lines, work

__all__ = ["lines", "work"]
