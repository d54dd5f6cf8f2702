"""Dashboard: one of them, and all that it owns in its process."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from aioqless.client import Client
from aioqless.contrib.dashboard.access import Access, Identity, Role
from aioqless.contrib.dashboard.flash import Notes
from aioqless.contrib.dashboard.live import Live
from aioqless.contrib.dashboard.page_state import Board
from aioqless.contrib.dashboard.rendering import Rendering, View
from aioqless.contrib.http_sessions import Session, Sessions
from aioqless.log import log

COOKIE, LASTS = "aioqless", 12 * 3600  # seconds after which one must log in again
LOCAL = "local"  # the name of a user with the start-up token


class Dashboard:
    """What requests share."""

    def __init__(
        self,
        client: Client,
        access: Access,
        secret: str | Sequence[str] | None,
        views: Mapping[str, View],
    ) -> None:
        self.client = client
        self.access = access
        self.startup_token = access.startup_token or secrets.token_urlsafe(24)
        self.sessions = Sessions(client, COOKIE, LASTS, secret)
        self.notes = Notes()
        self.board = Board(client, access)
        self.rendering = Rendering(views)
        self.live = Live(self.board, self.rendering)

    def proof_of(self, name: str) -> str | None:
        """Return what a session of this user depends on: the hash of the password, or the start-up
        token; None for no user."""
        if self.access.open:
            return self.startup_token if name == LOCAL else None
        user = self.access.users.get(name)
        return user.password if user else None

    async def user_of(self, session: Session) -> Identity | None:
        """Return who has logged in with a session, if that session is open."""
        proof = self.proof_of(session.name)
        if proof is None or not await self.sessions.is_open(session, proof):
            return None
        return (
            Identity(LOCAL, Role.ADMIN)
            if self.access.open
            else Identity(session.name, self.access.users[session.name].role)
        )

    async def is_still_open(self, session: Session) -> bool:
        """Whether a stream of a session may go on. Who is known to the app that the dashboard is
        part of is asked for at its next one."""
        if self.access.authenticate:
            return True
        proof = self.proof_of(session.name)
        return proof is not None and await self.sessions.is_still_open(session, proof)

    def log_token(self) -> None:
        """Log the link to a dashboard that generated its own start-up token."""
        if self.access.open and self.access.startup_token is None:
            log.warning(
                "web.token_created",
                link=f"/?token={self.startup_token}",
                why="without users, only who has this link gets in",
            )

    async def aclose(self) -> None:
        """End what runs in the background."""
        await self.live.aclose()
        await self.board.bulks.aclose()
