"""How far a worker has come on its way to its end."""

from __future__ import annotations

from collections.abc import Callable


class Lifecycle:
    """Flags that the parts of one worker share; they are set on its loop and never cleared."""

    def __init__(self, on_stopping: Callable[[], object] | None = None) -> None:
        self.stopping = False  # it pops no more, and ends when its runs have ended
        self.releasing = False  # it releases its runs, and waits for Redis only while locks last
        self._on_stopping = on_stopping

    def release(self) -> None:
        """Release runs from now on instead of waiting for them."""
        self.releasing = True

    def stop(self) -> bool:
        """Begin the shutdown; return whether it had not begun yet."""
        if self.stopping:
            return False
        self.stopping = True
        if self._on_stopping is not None:
            self._on_stopping()
        return True
