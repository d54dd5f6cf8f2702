"""Waits: what a run waits for, and when it parks."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator

from aioqless.client.job import JobRun
from aioqless.client.job.backend import RunContext
from aioqless.handlers.results import Parked
from aioqless.runtime.tasks import wait_for_event

LOOK = 0.5  # seconds: how soon a shutdown or the end of a step is noticed
PAUSE = 0.05  # seconds after a step, in which the next one may begin


class Wait:
    """One wait of a run.

    Attributes:
        woken: Set when there may be something new.
        task: The task that waits.
    """

    def __init__(self, waits: Waits, kind: str, park_after: float) -> None:
        self.woken = asyncio.Event()
        self.task = asyncio.current_task()
        self._waits = waits
        self._is_sleep = kind == "sleep"
        self._until = time.monotonic() + park_after

    def time_left(self) -> float:
        """Return the seconds until it may park."""
        return self._until - time.monotonic()

    async def look_later(self, seconds: float) -> None:
        """Wait until it is worth to look again: it was woken, or the seconds are over.

        Raises:
            Parked: That takes too long.
        """
        if self._is_sleep and seconds > self.time_left():
            self._until = 0
        await wait_for_event(self.woken, max(0.001, min(seconds, 1e6)))
        self._waits.raise_if_parked()


class Waits:
    """The waits of one run. It parks when nothing else is under way, and each has taken a moment.

    A wait raises Parked. Where the handler doesn't wait itself, but for tasks that do, it and they
    are canceled: else it would continue with `Parked` as their results.

    Owns the waits, and the task that looks at them.

    Attributes:
        parked: What the run was ended by, once it has parked.
    """

    def __init__(self, context: RunContext, run: JobRun) -> None:
        self._context = context
        self._run = run
        self._waits: dict[str, Wait] = {}
        self._woken: set[str] = set()  # names of which something new is there, perhaps known
        self._all_woken = False  # also waits that begin later look at once
        self._delays: set[object] = set()  # that keep it from parking
        self._pause_ends = 0.0
        self._watch: asyncio.Task[None] | None = None
        self.parked: Parked | None = None

    @contextlib.contextmanager
    def wait(self, kind: str, name: str) -> Iterator[Wait]:
        """Begin a wait.

        Raises:
            Parked: The run ends.
        """
        self.raise_if_parked()
        field = f"{kind}:{name}"
        self._waits[field] = wait = Wait(self, kind, self._context.park_after)
        if self._all_woken or name in self._woken:
            wait.woken.set()
        if self._watch is None or self._watch.done():
            self._watch = asyncio.get_running_loop().create_task(
                self._park_if_all_wait(), name="aioqless park"
            )
        try:
            yield wait
        finally:
            del self._waits[field]
            if not self._waits:
                self._watch.cancel()
                self._watch = None

    @contextlib.contextmanager
    def delayed(self) -> Iterator[None]:
        """Keep the run from parking."""
        delay = object()
        self._delays.add(delay)
        try:
            yield
        finally:
            self._pause_ends = time.monotonic() + PAUSE
            self._delays.discard(delay)

    def wake(self, name: str) -> None:
        """Let the wait of a name look again, also if it has not begun."""
        self._woken.add(name)
        for field, wait in self._waits.items():
            if field.partition(":")[2] == name:
                wait.woken.set()

    def wake_all(self) -> None:
        """Let all waits of the run look again, since messages about them may be lost."""
        self._all_woken = True
        for wait in self._waits.values():
            wait.woken.set()

    def raise_if_parked(self) -> None:
        """Raise Parked if the run has parked."""
        if self.parked is not None:
            raise Parked(str(self.parked), waits=self.parked.waits)

    def park(self, why: str, waits: tuple[str, ...] = ()) -> None:
        """End the run: whatever it waits for from now on raises Parked.

        Args:
            why: What the log says.
            waits: What the job waits for; nothing: it is to run again at once.
        """
        if self.parked is None:
            self.parked = Parked(why, waits=waits)

    async def _park_if_all_wait(self) -> None:
        while (left := self._time_left()) > 0:  # noqa: ASYNC110  # it depends on the time, too
            await asyncio.sleep(min(left, LOOK))
        self.park("the job waits", tuple(self._waits))
        task = self._run.task
        if task is not None and all(wait.task is not task for wait in self._waits.values()):
            for each in (task, *(wait.task for wait in self._waits.values() if wait.task)):
                each.cancel()
            return
        for wait in self._waits.values():
            wait.woken.set()

    def _time_left(self) -> float:
        """Return the seconds until it may park, as far as that is known."""
        if self._delays:
            return LOOK
        waits = 0.0
        if not self._context.is_draining():
            waits = max(wait.time_left() for wait in self._waits.values())
        return max(waits, self._pause_ends - time.monotonic())
