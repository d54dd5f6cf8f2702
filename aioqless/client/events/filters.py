"""Which events somebody wants to hear."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from aioqless import validation
from aioqless.client.events.types import KINDS, AnyEvent, Missed, Tracked, Untracked
from aioqless.store import Store

REMEMBERED = 10_000  # jobs


@dataclass(frozen=True, kw_only=True)
class EventFilter:
    """A filter: None lets all pass. What may have been missed always passes."""

    queues: frozenset[str] | None
    jids: frozenset[str] | None
    kinds: frozenset[str] | None
    tracked: bool

    @classmethod
    def checked(
        cls,
        queue: str | Collection[str] | None = None,
        jid: str | Collection[str] | None = None,
        kind: str | Collection[str] | None = None,
        tracked: bool = False,
    ) -> EventFilter:
        """Raises ValueError and TypeError for what can't be a name, and for a kind that there
        isn't."""
        kinds = _some("kind", kind)
        if unknown := sorted((kinds or frozenset()) - set(KINDS)):
            raise ValueError(
                f"there are no events of the kind {unknown[0]!r}; there are {', '.join(KINDS)}"
            )
        return cls(
            queues=_some("queue", queue), jids=_some("jid", jid), kinds=kinds, tracked=tracked
        )


class EventSelector:
    """Lets through what is wanted. Owns what must be remembered for that: which jobs are tracked,
    and which queue each was last in, for the log doesn't say with each event."""

    def __init__(self, wanted: EventFilter, store: Store) -> None:
        self._wanted = wanted
        self._store = store
        self._tracked: set[str] = set()
        self._queues: dict[str, str] = {}

    async def begin(self) -> None:
        """Look at what was told of before anybody listened."""
        if self._wanted.tracked:
            page = await self._store.track_list()
            self._tracked = {*(job["jid"] for job in page["jobs"]), *page["expired"]}

    async def passed(self, event: AnyEvent) -> AnyEvent | None:
        """The event, with its queue where that is known; None for one that isn't wanted."""
        if isinstance(event, Missed):
            return event
        jid: str | None = getattr(event, "jid", None)
        wanted = self._wanted
        self._heed(event, jid)
        if (wanted.kinds is not None and event.kind not in wanted.kinds) or (
            wanted.jids is not None and jid not in wanted.jids
        ):
            return None
        if wanted.tracked and jid not in self._tracked and not isinstance(event, Untracked):
            return None
        if (
            jid is not None
            and getattr(event, "queue", None) is None
            and (queue := await self._queue_of(jid))
        ):
            told: Any = event  # each that has a jid has a queue
            event = replace(told, queue=queue)
        if wanted.queues is not None and wanted.queues.isdisjoint(
            (getattr(event, "queue", None), getattr(event, "to", None))
        ):
            return None
        return event

    def _heed(self, event: AnyEvent, jid: str | None) -> None:
        """Remember what the event says for those that follow."""
        if isinstance(event, Tracked):
            self._tracked.add(event.jid)
        elif isinstance(event, Untracked):
            self._tracked.discard(event.jid)
        queue = getattr(event, "to", None) or getattr(event, "queue", None)
        if jid is None or queue is None:
            return
        self._queues.pop(jid, None)
        if event.kind in ("completed", "canceled"):
            return
        self._queues[jid] = queue
        if len(self._queues) > REMEMBERED:
            del self._queues[next(iter(self._queues))]

    async def _queue_of(self, jid: str) -> str | None:
        """Asked of Redis only where somebody wants certain queues: else a flood of failures would
        be a flood of questions."""
        if self._wanted.queues is None or jid in self._queues:
            return self._queues.get(jid)
        record = await self._store.get(jid=jid)
        return str(record["queue"]) if record and record["queue"] else None


def _some(what: str, given: str | Collection[str] | None) -> frozenset[str] | None:
    if given is None:
        return None
    some = frozenset([given] if isinstance(given, str) else given)
    for name in some:
        validation.check_name(what, name)
    return some
