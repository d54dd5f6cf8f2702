"""Clears a queue: cancels its jobs in calls of a bounded size."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from aioqless.store import Store

ClearState: TypeAlias = Literal["waiting", "scheduled", "depends", "failed"]
QUEUED: tuple[ClearState, ...] = ("waiting", "scheduled", "depends")
# Dependents are canceled before the jobs that they depend on.
_ORDER: tuple[ClearState, ...] = ("depends", "scheduled", "waiting", "failed")
_MAX_NAMED = 1000


@dataclass(kw_only=True)
class ClearResult:
    """The result of `Queue.clear`.

    Attributes:
        canceled: Number of jobs that were canceled; in a dry run, that would be.
        kept: Number of jobs that stayed, since a job that isn't canceled depends on them.
        kept_for: The jid of each job that stayed, with the jid of such a dependent; at most 1,000.
    """

    canceled: int = 0
    kept: int = 0
    kept_for: dict[str, str] = field(default_factory=dict)


class QueueClearing:
    """One clearing of a queue. Owns its result.

    Args:
        store: The commands of the namespace.
        queue: Name of the queue.
        states: States of the jobs to cancel.
        dry_run: Count the jobs only.

    Raises:
        ValueError: Jobs of a state can't be cleared.
    """

    def __init__(
        self, store: Store, queue: str, states: Iterable[ClearState], *, dry_run: bool = False
    ) -> None:
        self.result = ClearResult()
        self._store = store
        self._queue = queue
        self._states = _check_states(states)
        self._dry_run = dry_run

    async def steps(self) -> AsyncIterator[tuple[int, int]]:
        """Clear one state after the other; yield how many jobs each call canceled and kept."""
        for state in _ORDER:
            if state not in self._states:
                continue
            if state == "failed":
                sources: dict[str | None, int] = await self._store.failed()
            else:
                sources = {None: (await self._store.queues(queue=self._queue))[state]}
            for group, count in sources.items():
                async for step in self._clear(state, count, group):
                    yield step

    async def _clear(
        self, state: ClearState, count: int, group: str | None
    ) -> AsyncIterator[tuple[int, int]]:
        """Clear the jobs of a state or failure group, even if new ones are put meanwhile."""
        offset, canceled = 0, 0
        while offset is not None and canceled < 2 * count:
            reply = await self._store.clear(
                queue=self._queue,
                state=state,
                offset=offset,
                states=self._states,
                group=group,
                dry_run=1 if self._dry_run else None,
            )
            offset = reply["offset"]
            canceled += reply["canceled"]
            self._add(reply["canceled"], reply["kept"])
            if reply["canceled"] or reply["kept"]:
                yield reply["canceled"], len(reply["kept"])

    def _add(self, canceled: int, kept: list[tuple[str, str]]) -> None:
        self.result.canceled += canceled
        self.result.kept += len(kept)
        self.result.kept_for |= dict(kept[: _MAX_NAMED - len(self.result.kept_for)])


def _check_states(states: Iterable[ClearState]) -> list[ClearState]:
    """Return the states, each once."""
    if isinstance(states, str):
        raise ValueError(f"states must be a list of states (got {states!r})")
    checked = list(dict.fromkeys(states))
    for state in checked:
        if state not in get_args(ClearState):
            raise ValueError(
                f"states must be some of {', '.join(get_args(ClearState))} (got {state!r})"
            )
    return checked
