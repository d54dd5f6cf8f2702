"""Dashboard: the state that all requests of one dashboard share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar, cast

from aioqless.client import Client, Overview
from aioqless.client.overview import OverviewReader
from aioqless.client.workers import WorkerState
from aioqless.contrib.dashboard.bulk_actions import BulkActions
from aioqless.contrib.dashboard.redaction import Privacy, Redaction
from aioqless.contrib.http import BoundedDict, Identification
from aioqless.handlers import Handler, Source, declared
from aioqless.runtime.tasks import cancel_and_wait

MAX_WORKER_STATES = 1000
MAX_BROWSERS = 1000  # that have dismissed an alarm, or have messages to show
MAX_CACHED, CACHED_FOR = 50, 10.0  # values, seconds
SHARE = 0.02  # of the time, at most, in which a value is read again
RECENT = 2.0  # seconds for which requests share an overview
# Live pages share one for longer: seconds, and about how many commands per second it may take.
LIVE, MAX_LIVE, OVERVIEW_RATE = 5.0, 60.0, 50.0

T = TypeVar("T")


class Dashboard:
    """Owns what requests share: flash messages, the overview and bulk actions.

    The arguments are those of `create_app`; `identification` is of its `identify`.
    """

    def __init__(
        self,
        client: Client,
        identification: Identification,
        *,
        privacy: Privacy,
        job_links: Mapping[str, str] = MappingProxyType({}),
        handlers: Sequence[Source] = (),
        lake: str | None = None,
    ) -> None:
        for name, link in job_links.items():
            if not link.startswith(("https://", "http://")) or "{value}" not in link:
                raise ValueError(f"the link of {name!r} must be an http(s) URL with {{value}}")
        self.client = client
        self.identification = identification
        self.data_for = privacy.data_for
        self.job_links = job_links
        self.lake = lake
        self.handlers = {each.klass: each for each in declared(Handler, handlers)}
        # kind (done or refused) and text of messages, by the browser whose next page shows them
        self.flash = BoundedDict[str, list[tuple[str, str]]](MAX_BROWSERS)
        self.redaction = Redaction(privacy.redact)
        self.overviews = OverviewReader(client)
        self.bulk_actions = BulkActions(client)
        self._cached = BoundedDict[object, asyncio.Task[Any]](MAX_CACHED)
        # keys of alarms, by the browser that has dismissed them
        self.dismissed = BoundedDict[str, tuple[str, ...]](MAX_BROWSERS)
        # what workers replied when they were asked last
        self.worker_states = BoundedDict[str, WorkerState | None](MAX_WORKER_STATES)

    async def read_overview(self, *, live: bool = False) -> Overview:
        """Return the overview that all pages share; that of a live page may be older."""
        age = RECENT
        if live:
            age = min(max(LIVE, self.overviews.latest.commands / OVERVIEW_RATE), MAX_LIVE)
        return await self.overviews.read(max_age=age)

    async def cached(
        self, key: object, read: Callable[[], Awaitable[T]], *, least: float = CACHED_FOR
    ) -> T:
        """Return what `read` returns, or what it returned for this key a short time ago.

        Requests for the same key share a read, for `least` seconds or longer.
        """
        if (task := self._cached.get(key)) is None:
            task = self._cached[key] = asyncio.create_task(self._read(key, read, least))
        return cast(T, await asyncio.shield(task))

    async def _read(self, key: object, read: Callable[[], Awaitable[T]], least: float) -> T:
        begun, kept = time.monotonic(), 0.0
        try:
            value = await read()
            kept = max(least, (time.monotonic() - begun) / SHARE)
        finally:
            asyncio.get_running_loop().call_later(kept, self._cached.pop, key, None)
        return value

    async def aclose(self) -> None:
        """Stop the reads and bulk actions that run in the background."""
        await cancel_and_wait(*self._cached.values())
        await self.bulk_actions.aclose()
