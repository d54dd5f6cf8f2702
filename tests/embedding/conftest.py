"""Host applications, and the logs of their workers."""

from tests.worker.conftest import lines

__all__ = ["lines"]
