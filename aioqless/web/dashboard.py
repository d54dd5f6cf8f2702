"""Dashboard: one of them, and all that it owns in its process."""

from __future__ import annotations

from collections.abc import Mapping

from aioqless.browsers import Sessions
from aioqless.client import Client
from aioqless.web.access import Access
from aioqless.web.board import Board
from aioqless.web.live import Live
from aioqless.web.notes import Notes
from aioqless.web.rendering import Rendering, View

COOKIE, LASTS = "aioqless", 12 * 3600  # seconds after which one must log in again


class Dashboard:
    """What requests share."""

    def __init__(self, client: Client, access: Access, secret: str | None, views: Mapping[str, View]) -> None:
        self.client = client
        self.access = access
        self.sessions = Sessions(COOKIE, LASTS, secret)
        self.notes = Notes()
        self.board = Board(client, access)
        self.rendering = Rendering(views)
        self.live = Live(self.board, self.rendering)

    async def aclose(self) -> None:
        """End what runs in the background."""
        await self.live.aclose()
        await self.board.bulks.aclose()
