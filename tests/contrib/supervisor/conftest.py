"""The log of a supervisor in the tests' own process."""

from tests.worker.conftest import lines

__all__ = ["lines"]
