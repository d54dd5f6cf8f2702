"""The selection on the screen, and what each key does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from redis import exceptions

from aioqless.cli.presentation.formatting import pluralize
from aioqless.cli.top.sampler import QueueSample, Snapshot
from aioqless.client import Client
from aioqless.client.job.summaries import FailureGroup
from aioqless.errors import AioqlessError
from aioqless.validation import plain

PANES = ("queues", "failures", "workers")
PAGE = 10  # lines


@dataclass
class Controller:
    """Owns the selection: the pane, and the line of each pane by its name, since lines move.

    Attributes:
        snapshot: what was last read from Redis.
        question: asks for confirmation with `y`.
        message: the result of the last key.
        failure: a group of failures, while its details are shown.
    """

    client: Client
    snapshot: Snapshot = field(default_factory=Snapshot)
    pane: str = PANES[0]
    selected: dict[str, str] = field(default_factory=dict)
    sort_by_rate: bool = False
    question: str = ""
    message: str = ""
    failure: FailureGroup | None = None
    finished: bool = False
    _pending: Callable[[], Awaitable[str]] | None = None

    def sorted_queues(self) -> list[QueueSample]:
        """Return the queues in the selected order."""
        if not self.sort_by_rate:
            return list(self.snapshot.queues)
        return sorted(
            self.snapshot.queues,
            key=lambda queue: (
                -queue.rates.completed,
                -queue.counts.waiting,
                queue.counts.name,
            ),
        )

    def pane_names(self, pane: str) -> list[str]:
        """Return the names of the lines of a pane."""
        if pane == "queues":
            return [queue.counts.name for queue in self.sorted_queues()]
        return (
            list(self.snapshot.failed)
            if pane == "failures"
            else [worker.name for worker in self.snapshot.workers]
        )

    def selected_line(self, pane: str) -> int:
        """Return the index of the selected line of a pane; 0 if the selected one is gone."""
        names = self.pane_names(pane)
        return names.index(self.selected[pane]) if self.selected.get(pane) in names else 0

    async def press(self, key: str) -> None:
        """Handle a key; an error becomes the message."""
        if self._pending is not None:
            await self._answer(key, self._pending)
        elif self.failure and key in ("escape", "enter"):
            self.failure = None
        elif key in ("q", "escape"):
            self.finished = True
        elif key in ("tab", "back tab"):
            self.failure = None
            self.pane = PANES[(PANES.index(self.pane) + (1 if key == "tab" else -1)) % len(PANES)]
        elif key == "s":
            self.sort_by_rate = not self.sort_by_rate
        elif key in _MOVES:
            self._move(_MOVES[key])
        elif names := self.pane_names(self.pane):
            await self._act(key, names[self.selected_line(self.pane)])

    async def _answer(self, key: str, act: Callable[[], Awaitable[str]]) -> None:
        self._pending, self.question = None, ""
        if key == "y":
            await self._try(act)
        else:
            self.message = "nothing was done"

    def _move(self, by: int) -> None:
        self.failure = None
        if names := self.pane_names(self.pane):
            line = min(max(self.selected_line(self.pane) + by, 0), len(names) - 1)
            self.selected[self.pane] = names[line]

    async def _act(self, key: str, name: str) -> None:
        match self.pane, key:
            case "queues", "p":
                await self._try(lambda: self._toggle_pause(name))
            case "failures", "r":
                self._pending = lambda: self._retry(name)
                jobs = pluralize(self.snapshot.failed[name], "job")
                self.question = f"Retry {jobs} in {plain(name)}? y/n"
            case "failures", "enter":
                await self._try(lambda: self._show_failure(name))
            case "workers", "p":
                await self._try(lambda: self._toggle_quiet(name))

    async def _try(self, act: Callable[[], Awaitable[str]]) -> None:
        try:
            self.message = await act()
        except (AioqlessError, exceptions.RedisError) as refused:
            self.message = f"refused: {plain(str(refused))}"

    async def _toggle_pause(self, name: str) -> str:
        queue = self.client.queue(name)
        if (await queue.counts()).paused:
            await queue.unpause()
            return f"{plain(name)} is resumed"
        await queue.pause()
        return f"{plain(name)} is paused; running jobs continue"

    async def _retry(self, group: str) -> str:
        self.failure = None
        done = await self.client.jobs.retry_group(group, self.snapshot.failed.get(group, 0))
        return f"{pluralize(done, 'job')} of {plain(group)} retried"

    async def _show_failure(self, group: str) -> str:
        (found,) = await self.client.jobs.failures(group)
        self.failure = found if found.latest else None
        return "" if found.latest else f"there are no failed jobs left in {plain(group)}"

    async def _toggle_quiet(self, name: str) -> str:
        if (await self.client.workers.show(name)).paused:
            await self.client.workers.resume(name)
            return f"{plain(name)} is resumed"
        await self.client.workers.quiet(name)
        return f"{plain(name)} starts no more jobs; running jobs continue"


_MOVES = {
    "up": -1,
    "k": -1,
    "down": 1,
    "j": 1,
    "page up": -PAGE,
    "page down": PAGE,
    "home": -(10**9),
    "end": 10**9,
}
