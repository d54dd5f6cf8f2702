"""What is chosen on the screen, asked and told; and what each key does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from redis import exceptions

from aioqless.cli.presentation.formatting import many, plain
from aioqless.cli.presentation.top.sampler import QueueSeen, Seen
from aioqless.client import Client
from aioqless.client.job.summaries import FailureGroup
from aioqless.errors import AioqlessError

PANES = ("queues", "failures", "workers")
PAGE = 10  # lines


@dataclass
class Board:
    """Owns the choice: which pane, and which line of each, by its name, so that it stays with what
    it names when lines move.

    `question` is put to the reader, and `y` does what it asks; `told` is what the last key came to;
    `why` is the latest failure of a group, while somebody reads it."""

    client: Client
    seen: Seen = field(default_factory=Seen)
    pane: str = PANES[0]
    chosen: dict[str, str] = field(default_factory=dict)
    busiest: bool = False
    question: str = ""
    told: str = ""
    why: FailureGroup | None = None
    over: bool = False
    _asked: Callable[[], Awaitable[str]] | None = None

    def queues(self) -> list[QueueSeen]:
        """In the order that is wanted."""
        if not self.busiest:
            return list(self.seen.queues)
        return sorted(
            self.seen.queues,
            key=lambda queue: (
                -queue.rates.completed,
                -queue.counts.waiting,
                queue.counts.name,
            ),
        )

    def names(self, pane: str) -> list[str]:
        """What the lines of a pane are about."""
        if pane == "queues":
            return [queue.counts.name for queue in self.queues()]
        return (
            list(self.seen.failed)
            if pane == "failures"
            else [worker.name for worker in self.seen.workers]
        )

    def at(self, pane: str) -> int:
        """Which line of a pane is chosen: the first where what was chosen is gone."""
        names = self.names(pane)
        return names.index(self.chosen[pane]) if self.chosen.get(pane) in names else 0

    async def press(self, key: str) -> None:
        """Do what a key is for. What Redis refuses is told."""
        if self._asked is not None:
            act, self._asked, self.question = self._asked, None, ""
            if key != "y":
                self.told = "nothing was done"
                return
            await self._try(act)
        elif self.why and key in ("escape", "enter"):
            self.why = None
        elif key in ("q", "escape"):
            self.over = True
        elif key in ("tab", "back tab"):
            self.why = None
            self.pane = PANES[(PANES.index(self.pane) + (1 if key == "tab" else -1)) % len(PANES)]
        elif key == "s":
            self.busiest = not self.busiest
        elif key in _MOVES:
            self._move(_MOVES[key])
        elif names := self.names(self.pane):
            await self._act(key, names[self.at(self.pane)])

    def _move(self, by: int) -> None:
        self.why = None
        if names := self.names(self.pane):
            self.chosen[self.pane] = names[min(max(self.at(self.pane) + by, 0), len(names) - 1)]

    async def _act(self, key: str, name: str) -> None:
        match self.pane, key:
            case "queues", "p":
                await self._try(lambda: self._pause(name))
            case "failures", "r":
                self._asked = lambda: self._retry(name)
                self.question = (
                    f"Run {many(self.seen.failed[name], 'job')} of {plain(name)} again? y/n"
                )
            case "failures", "enter":
                await self._try(lambda: self._why(name))
            case "workers", "p":
                await self._try(lambda: self._quiet(name))

    async def _try(self, act: Callable[[], Awaitable[str]]) -> None:
        try:
            self.told = await act()
        except (AioqlessError, exceptions.RedisError) as refused:
            self.told = f"refused: {plain(str(refused))}"

    async def _pause(self, name: str) -> str:
        queue = self.client.queue(name)
        if (await queue.counts()).paused:
            await queue.unpause()
            return f"{plain(name)} goes on"
        await queue.pause()
        return f"{plain(name)} is paused: nobody pops from it, what runs goes on"

    async def _retry(self, group: str) -> str:
        self.why = None
        done = await self.client.jobs.retry_group(group, self.seen.failed.get(group, 0))
        return f"{many(done, 'job')} of {plain(group)} run again"

    async def _why(self, group: str) -> str:
        (found,) = await self.client.jobs.failures(group)
        self.why = found if found.latest else None
        return "" if found.latest else f"nothing is left in {plain(group)}"

    async def _quiet(self, name: str) -> str:
        if (await self.client.workers.show(name)).paused:
            await self.client.workers.resume(name)
            return f"{plain(name)} goes on"
        await self.client.workers.quiet(name)
        return f"{plain(name)} begins nothing more; what runs goes on"


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
