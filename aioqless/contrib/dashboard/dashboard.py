"""Dashboard: the state that all requests of one dashboard share."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from aioqless.client import Client, Overview
from aioqless.client.overview import OverviewReader
from aioqless.client.workers import WorkerState
from aioqless.contrib.dashboard.access import Access, Identity, Role
from aioqless.contrib.dashboard.bulk_actions import BulkActions
from aioqless.contrib.dashboard.redaction import Redaction
from aioqless.contrib.http import BoundedDict, Session, Sessions
from aioqless.handlers import Handler, Source, declared
from aioqless.runtime.log import log
from aioqless.runtime.tasks import cancel_and_wait

COOKIE = "aioqless"
SESSION_LIFETIME = 12 * 3600  # seconds
LOCAL = "local"  # the name of the user with the start-up token
MAX_WORKER_STATES = 1000
MAX_BROWSERS = 1000  # that have dismissed an alarm, or have messages to show
MAX_CACHED, CACHED_FOR = 50, 10.0  # values, seconds
SHARE = 0.02  # of the time, at most, in which a value is read again
RECENT = 2.0  # seconds for which requests share an overview
# Live pages share one for longer: seconds, and about how many commands per second it may take.
LIVE, MAX_LIVE, OVERVIEW_RATE = 5.0, 60.0, 50.0

T = TypeVar("T")


class Dashboard:
    """Owns what requests share: sessions, flash messages, the overview and bulk actions.

    The arguments are those of `create_app`.
    """

    def __init__(
        self,
        client: Client,
        access: Access,
        secret: str | Sequence[str] | None,
        job_links: Mapping[str, str],
        handlers: Sequence[Source] = (),
        lake: str | None = None,
    ) -> None:
        for name, link in job_links.items():
            if not link.startswith(("https://", "http://")) or "{value}" not in link:
                raise ValueError(f"the link of {name!r} must be an http(s) URL with {{value}}")
        self.client = client
        self.access = access
        self.job_links = job_links
        self.lake = lake
        self.handlers = {each.klass: each for each in declared(Handler, handlers)}
        self.startup_token = access.startup_token or secrets.token_urlsafe(24)
        self.sessions = Sessions(client, COOKIE, SESSION_LIFETIME, secret)
        # kind (done or refused) and text of messages, by the browser whose next page shows them
        self.flash = BoundedDict[str, list[tuple[str, str]]](MAX_BROWSERS)
        self.redaction = Redaction(access.redact)
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

    def proof_of(self, name: str) -> str | None:
        """Return the secret that a user's session depends on; None for an unknown user.

        It is the hash of the password, or the start-up token.
        """
        if self.access.uses_startup_token:
            return self.startup_token if name == LOCAL else None
        user = self.access.users.get(name)
        return user.password if user else None

    async def find_user(self, session: Session) -> Identity | None:
        """Return the user who is logged in with a session, if the session is open."""
        proof = self.proof_of(session.name)
        if proof is None or not await self.sessions.is_open(session, proof):
            return None
        if self.access.uses_startup_token:
            return Identity(LOCAL, Role.ADMIN)
        return Identity(session.name, self.access.users[session.name].role)

    async def is_still_open(self, session: Session) -> bool:
        """Return whether a live stream of a session may continue.

        An app's own `authenticate` is asked again when the browser reconnects.
        """
        if self.access.authenticate:
            return True
        proof = self.proof_of(session.name)
        return proof is not None and await self.sessions.is_still_open(session, proof)

    def log_token(self) -> None:
        """Log the link to a dashboard that generated its own start-up token."""
        if self.access.uses_startup_token and self.access.startup_token is None:
            log.warning(
                "web.token_created",
                link=f"/?token={self.startup_token}",
                why="without users, only who has this link gets in",
            )

    async def aclose(self) -> None:
        """Stop the reads and bulk actions that run in the background."""
        await cancel_and_wait(*self._cached.values())
        await self.bulk_actions.aclose()
