"""EventSelector: selects the events that a caller wants."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from aioqless import validation
from aioqless.client.events.types import (
    KINDS,
    AnyEvent,
    JobEvent,
    Missed,
    Other,
    Tracked,
    Untracked,
)
from aioqless.store import Store

MAX_REMEMBERED = 10_000  # jobs whose queue is known


class EventSelector:
    """Selects the events that a caller wants; without a name of a queue, jid or kind, all.

    Owns what that takes: which jobs are tracked, and the latest queue of each job, since not every
    event names it.

    Args:
        store: The commands of the namespace.
        queue: Names of queues.
        jid: Jids of jobs.
        kind: Kinds of events.
        tracked: Only events of tracked jobs.

    Raises:
        TypeError: A name is not a string.
        ValueError: There is no such kind, or a name is not valid.
    """

    def __init__(
        self,
        store: Store,
        queue: str | Collection[str] | None = None,
        jid: str | Collection[str] | None = None,
        kind: str | Collection[str] | None = None,
        tracked: bool = False,
    ) -> None:
        self._store = store
        self._kinds = _check_names("kind", kind)
        if unknown := sorted((self._kinds or frozenset()) - set(KINDS)):
            raise ValueError(f"kind must be one of {', '.join(KINDS)} (got {unknown[0]!r})")
        self._wanted_queues = _check_names("queue", queue)
        self._jids = _check_names("jid", jid)
        self._only_tracked = tracked
        self._tracked: set[str] = set()
        self._queues: dict[str, str] = {}

    async def load_tracked(self) -> None:
        """Read which jobs are tracked already."""
        if self._only_tracked:
            page = await self._store.track_list()
            self._tracked = {*(job["jid"] for job in page["jobs"]), *page["expired"]}

    async def select(self, event: AnyEvent) -> AnyEvent | None:
        """Return the event, with its queue if that is known, or None if it is not wanted."""
        if isinstance(event, Missed):
            return event
        self._update(event)
        if self._kinds is not None and event.kind not in self._kinds:
            return None
        if not isinstance(event, JobEvent | Other):  # it concerns no job
            selects_jobs = self._only_tracked or (self._jids, self._wanted_queues) != (None, None)
            return None if selects_jobs else event
        if (self._jids is not None and event.jid not in self._jids) or (
            self._only_tracked
            and event.jid not in self._tracked
            and not isinstance(event, Untracked)
        ):
            return None
        if event.jid and event.queue is None and (queue := await self._find_queue(event.jid)):
            event = replace(event, queue=queue)
        to = getattr(event, "to", None)
        if self._wanted_queues is not None and self._wanted_queues.isdisjoint((event.queue, to)):
            return None
        return event

    def _update(self, event: AnyEvent) -> None:
        """Update the tracked jobs and the queue of the job."""
        if not isinstance(event, JobEvent | Other):
            return
        if isinstance(event, Tracked):
            self._tracked.add(event.jid)
        elif isinstance(event, Untracked):
            self._tracked.discard(event.jid)
        queue = getattr(event, "to", None) or event.queue
        if event.jid is None or queue is None:
            return
        self._queues.pop(event.jid, None)
        if event.kind in ("completed", "canceled"):
            return
        self._queues[event.jid] = queue
        if len(self._queues) > MAX_REMEMBERED:
            del self._queues[next(iter(self._queues))]

    async def _find_queue(self, jid: str) -> str | None:
        """Return the queue of a job; read it only if there is a filter of queues.

        Otherwise a flood of failures would cause a flood of reads.
        """
        if self._wanted_queues is None or jid in self._queues:
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
