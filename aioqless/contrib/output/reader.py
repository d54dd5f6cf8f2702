"""OutputReader: reads what jobs emit, with one subscription for all readers of a client."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Any, NamedTuple

from aioqless.client import job_data
from aioqless.client.job.backend import JobBackend
from aioqless.client.job.state import ENDED, Emitted, Ended, JobState, Missed, Output, Restarted
from aioqless.contrib.output.generated_commands import OutputCommands
from aioqless.contrib.output.sender import bound_to
from aioqless.errors import NoSuchJob
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.store import context_with

CHECKED_EVERY = 60.0  # seconds of silence after which a job's state is read

_POSITION = re.compile(r"(\d{1,19})-(\d{1,19})")
_ENDED = re.compile(r"\d+-\d+-end")


class Position(NamedTuple):
    """A place in an output: its generation, and how many of its values come before."""

    generation: int
    number: int

    def __str__(self) -> str:
        return f"{self.generation}-{self.number}"


class Page(NamedTuple):
    """The result of one read: the state of the job, values, and the position after them."""

    state: str
    entries: list[tuple[Position, list[Any]]]


def read_output(
    backend: JobBackend,
    jid: str,
    after: str | None = None,
    *,
    latest: int | None = None,
    follow: bool = True,
) -> AsyncGenerator[Output, None]:
    """Iterate over the output of a job; `Jobs.output` says more."""
    reader = backend.parts.get("output reader")
    if not isinstance(reader, OutputReader):
        reader = backend.parts["output reader"] = OutputReader(backend)
    return reader.read(jid, after, latest, follow=follow)


class OutputReader:
    """Reads the output of jobs. Each reader reads from Redis on its own: none slows another.

    Owns the reads that are under way, which readers at the same position share.
    """

    def __init__(self, backend: JobBackend) -> None:
        self._commands = OutputCommands(backend.store)
        self._codec = backend.codec
        self._watcher = backend.output_watcher
        self._reads: dict[tuple[str, Position | None], asyncio.Task[Page]] = {}

    async def read(
        self,
        jid: str,
        after: str | None = None,
        latest: int | None = None,
        *,
        follow: bool = True,
    ) -> AsyncGenerator[Output, None]:
        """Yield the output of a job after a position, until the job has ended."""
        position, known = _position_of(after), after is not None
        if known and position is None:
            if _ENDED.fullmatch(after or ""):
                return
            yield Restarted("0-0")

        async def read() -> Page:
            if position is None and latest is not None:
                return await self._read(jid, position, latest)
            return await self._share(jid, position)

        async with aclosing(self._pages(jid, read, follow=follow)) as pages:
            async for page in pages:
                for entry, values in page.entries:
                    for output in _outputs(position, entry, values):
                        yield output
                    position = entry
                known = known or bool(page.state or page.entries)
                if not known:
                    raise NoSuchJob("output", "NOJOB", {"jid": jid, "why": "there is no such job"})
                if end := _end_of(page, position):
                    yield end
                    return

    async def aclose(self) -> None:
        """Cancel the reads that are under way."""
        await cancel_and_wait(*self._reads.values())

    async def _pages(
        self, jid: str, read: Callable[[], Awaitable[Page]], *, follow: bool
    ) -> AsyncGenerator[Page, None]:
        """Yield the stored pages and, with `follow`, later ones as well."""
        if follow:
            pages = self._watcher.watch(
                jid, read, interval=CHECKED_EVERY, again=lambda page: bool(page.entries)
            )
            async with aclosing(pages):
                async for page in pages:
                    yield page
        else:
            while (page := await read()).entries:
                yield page
            yield page

    async def _share(self, jid: str, position: Position | None) -> Page:
        """Read, unless another reader reads the same."""
        key = jid, position
        if (task := self._reads.get(key)) is None:
            task = self._reads[key] = asyncio.get_running_loop().create_task(
                self._read(jid, position), context=context_with(None)
            )
            task.add_done_callback(lambda _: self._reads.pop(key))
        return await asyncio.shield(task)

    async def _read(self, jid: str, position: Position | None, latest: int | None = None) -> Page:
        after = str(position) if position is not None else None
        state, *found = await self._commands.output(jid=jid, position=after, latest=latest)
        entries = []
        for name, text in zip(found[::2], found[1::2], strict=True):
            values = self._codec.decode_result(job_data.decode(text), bound_to(jid))
            generation, _, number = name.partition("-")
            entries.append((Position(int(generation), int(number)), values))
        return Page(state, entries)


def _position_of(name: str | None) -> Position | None:
    """Return the position that an id names; None if it names none."""
    found = _POSITION.fullmatch(name or "")
    return found and Position(int(found[1]), int(found[2]))


def _end_of(page: Page, position: Position | None) -> Ended | None:
    """Return the end of the output, if nothing more will come."""
    if page.entries or (page.state and page.state not in ENDED):
        return None
    state = JobState(page.state) if page.state else None
    return Ended(state, f"{position or '0-0'}-end")


def _outputs(position: Position | None, end: Position, values: list[Any]) -> Iterator[Output]:
    """Yield what an entry holds for a reader at a position."""
    first = end.number - len(values)
    if position is not None and position.generation != end.generation:
        yield Restarted(f"{end.generation}-0")
        position = None
    seen = 0 if position is None else position.number
    if first > seen:
        yield Missed(first - seen, f"{end.generation}-{first}")
    for number, value in enumerate(values, first + 1):
        if number > seen:
            yield Emitted(value, f"{end.generation}-{number}")
