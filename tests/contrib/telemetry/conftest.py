"""Workers with telemetry."""

from tests.worker.conftest import lines, work

__all__ = ["lines", "work"]
