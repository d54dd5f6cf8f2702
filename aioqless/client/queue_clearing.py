"""Clears a queue: cancels its jobs in calls of a bounded size."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, TypeAlias, get_args

from aioqless.client.actor import actor
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

    def add(self, other: ClearResult) -> None:
        """Add the result of one more call."""
        self.canceled += other.canceled
        self.kept += other.kept
        self.kept_for |= dict(islice(other.kept_for.items(), _MAX_NAMED - len(self.kept_for)))


async def clear_queue(
    store: Store, queue: str, states: Iterable[ClearState], *, dry_run: bool = False
) -> AsyncIterator[ClearResult]:
    """Cancel the jobs of a queue in one state after the other; yield the result of each call.

    Args:
        store: The commands of the namespace.
        queue: Name of the queue.
        states: States of the jobs to cancel.
        dry_run: Count the jobs only.

    Raises:
        ValueError: Jobs of a state can't be cleared.
    """
    checked = _check_states(states)
    for state in _ORDER:
        if state not in checked:
            continue
        if state == "failed":
            groups: dict[str | None, int] = await store.failed()
        else:
            groups = {None: (await store.queues(queue=queue))[state]}
        for group, count in groups.items():
            offset, canceled = 0, 0
            while offset is not None and canceled < 2 * count:  # new ones may be put meanwhile
                reply = await store.clear(
                    queue=queue,
                    state=state,
                    offset=offset,
                    states=checked,
                    group=group,
                    dry_run=1 if dry_run else None,
                    actor=actor.get(),
                )
                offset = reply["offset"]
                canceled += reply["canceled"]
                if reply["canceled"] or reply["kept"]:
                    kept = dict(reply["kept"])
                    yield ClearResult(canceled=reply["canceled"], kept=len(kept), kept_for=kept)


def _check_states(states: Iterable[ClearState]) -> list[ClearState]:
    """Return the states, each once."""
    if isinstance(states, str):
        raise ValueError(f"states must be a list of states (got {states!r})")
    checked = list(dict.fromkeys(states))
    for state in checked:
        if state not in get_args(ClearState):
            known = ", ".join(get_args(ClearState))
            raise ValueError(f"states must be some of {known} (got {state!r})")
    return checked
