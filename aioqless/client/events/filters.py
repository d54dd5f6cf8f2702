"""EventFilter says which events a caller wants; EventSelector selects them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from aioqless import validation
from aioqless.client.events.types import (
    KINDS,
    AnyEvent,
    Missed,
    Tracked,
    Untracked,
    job_of,
    queue_of,
    with_queue,
)
from aioqless.store import Store

MAX_REMEMBERED = 10_000  # jobs whose queue is known


@dataclass(frozen=True, kw_only=True)
class EventFilter:
    """Which events a caller wants; None for any.

    Attributes:
        queues: Names of queues.
        jids: Jids of jobs.
        kinds: Kinds of events.
        tracked: Only events of tracked jobs.
    """

    queues: frozenset[str] | None
    jids: frozenset[str] | None
    kinds: frozenset[str] | None
    tracked: bool

    @classmethod
    def create(
        cls,
        queue: str | Collection[str] | None = None,
        jid: str | Collection[str] | None = None,
        kind: str | Collection[str] | None = None,
        tracked: bool = False,
    ) -> EventFilter:
        """Make a filter of what a caller gave.

        Raises:
            TypeError: A name is not a string.
            ValueError: There is no such kind, or a name is not valid.
        """
        kinds = _check_names("kind", kind)
        if unknown := sorted((kinds or frozenset()) - set(KINDS)):
            raise ValueError(f"kind must be one of {', '.join(KINDS)} (got {unknown[0]!r})")
        return cls(
            queues=_check_names("queue", queue),
            jids=_check_names("jid", jid),
            kinds=kinds,
            tracked=tracked,
        )


class EventSelector:
    """Selects the events that a filter asks for.

    Owns what that takes: which jobs are tracked, and the latest queue of each job, since not every
    event names it.
    """

    def __init__(self, wanted: EventFilter, store: Store) -> None:
        self._wanted = wanted
        self._store = store
        self._tracked: set[str] = set()
        self._queues: dict[str, str] = {}

    async def load_tracked(self) -> None:
        """Read which jobs are tracked already."""
        if self._wanted.tracked:
            page = await self._store.track_list()
            self._tracked = {*(job["jid"] for job in page["jobs"]), *page["expired"]}

    async def select(self, event: AnyEvent) -> AnyEvent | None:
        """Return the event, with its queue if that is known, or None if it is not wanted."""
        if isinstance(event, Missed):
            return event
        jid, wanted = job_of(event), self._wanted
        self._update(event, jid)
        if wanted.kinds is not None and event.kind not in wanted.kinds:
            return None
        if wanted.jids is not None and jid not in wanted.jids:
            return None
        if wanted.tracked and jid not in self._tracked and not isinstance(event, Untracked):
            return None
        if jid and queue_of(event) is None and (queue := await self._find_queue(jid)):
            event = with_queue(event, queue)
        if wanted.queues is not None and wanted.queues.isdisjoint(
            (queue_of(event), getattr(event, "to", None))
        ):
            return None
        return event

    def _update(self, event: AnyEvent, jid: str | None) -> None:
        """Update the tracked jobs and the queue of the job."""
        if isinstance(event, Tracked):
            self._tracked.add(event.jid)
        elif isinstance(event, Untracked):
            self._tracked.discard(event.jid)
        queue = getattr(event, "to", None) or queue_of(event)
        if jid is None or queue is None:
            return
        self._queues.pop(jid, None)
        if event.kind in ("completed", "canceled"):
            return
        self._queues[jid] = queue
        if len(self._queues) > MAX_REMEMBERED:
            del self._queues[next(iter(self._queues))]

    async def _find_queue(self, jid: str) -> str | None:
        """Return the queue of a job; read it only if there is a filter of queues.

        Otherwise a flood of failures would cause a flood of reads.
        """
        if self._wanted.queues is None or jid in self._queues:
            return self._queues.get(jid)
        record = await self._store.get(jid=jid)
        return str(record["queue"]) if record and record["queue"] else None


def _check_names(what: str, names: str | Collection[str] | None) -> frozenset[str] | None:
    if names is None:
        return None
    checked = frozenset([names] if isinstance(names, str) else names)
    for name in checked:
        validation.check_name(what, name)
    return checked
