"""Board: one dashboard, and all that it owns in its process."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from aioqless.client import Client
from aioqless.errors import InvalidArgument, NoSuchJob
from aioqless.web.access import Access
from aioqless.web.asked import Asked, Page
from aioqless.web.bulk import Bulks
from aioqless.web.live import Live
from aioqless.web.redaction import Redaction
from aioqless.web.rendering import Templates
from aioqless.web.sampler import Sampler
from aioqless.web.sessions import Session, Sessions

View: TypeAlias = Callable[[Asked], Awaitable[Page]]

MOST_NOTES = 1000
MOST_NOTES_EACH = 5


class LastFew(OrderedDict[str, "dict[str, object] | None"]):
    """What workers said of themselves when they were asked last; of so many of them."""

    def __setitem__(self, name: str, said: dict[str, object] | None) -> None:
        super().__setitem__(name, said)
        while len(self) > MOST_NOTES:
            self.popitem(last=False)


class Board:
    """What requests share: who may what, the latest sample, the pages that are live, acts that are under way, words for browsers."""

    def __init__(self, client: Client, access: Access, secret: str | None, views: Mapping[str, View]) -> None:
        self.client = client
        self.access = access
        self.views = views
        self.sessions = Sessions(secret)
        self.redaction = Redaction(access.redact)
        self.sampler = Sampler(client)
        self.bulks = Bulks(client)
        self.live = Live(self)
        self.templates = Templates()
        self.served = LastFew()
        self._notes: OrderedDict[str, list[tuple[str, str]]] = OrderedDict()
        self._placeholder = f"token-{secrets.token_hex(16)}"  # in contents that several browsers share

    async def page(self, asked: Asked) -> Page:
        """What a view finds. What isn't there, or can't be asked, is a page too."""
        try:
            return await self.views[asked.path](asked)
        except (NoSuchJob, KeyError) as gone:
            why = gone.told() if isinstance(gone, NoSuchJob) else "There is no such page."
            return Page("gone.html", "Not there", {"why": why}, live=False, status=404)
        except InvalidArgument as wrong:
            return Page("gone.html", "Can't be asked", {"why": wrong.told()}, live=False, status=400)

    async def html(self, asked: Asked, session: Session) -> tuple[str, int]:
        """A whole page for one browser, and its status."""
        page = await self.page(asked)
        return self.templates.whole(page, asked, self.sessions.token(session), self.notes(session)), page.status

    async def contents(self, asked: Asked) -> str:
        """The part of a page that changes, for all browsers; `for_browser` makes it one's own."""
        return self.templates.part(await self.page(asked), asked, self._placeholder)

    def trouble(self, asked: Asked, error: Exception) -> str:
        """The same while Redis is away."""
        return self.templates.part(Page("away.html", "Redis is away", {"why": str(error)}), asked, self._placeholder)

    def for_browser(self, text: str, session: Session) -> str:
        """Shared contents with this browser's own token."""
        return text.replace(self._placeholder, self.sessions.token(session))

    def note(self, session: Session, kind: str, text: str) -> None:
        """Keep a word for a browser until it loads its next page. `kind`: done or refused."""
        notes = self._notes.setdefault(session.nonce, [])
        notes[:] = [*notes[1 - MOST_NOTES_EACH :], (kind, text)]
        while len(self._notes) > MOST_NOTES:
            self._notes.popitem(last=False)

    def notes(self, session: Session) -> list[tuple[str, str]]:
        """The words kept for a browser; they are told once."""
        return self._notes.pop(session.nonce, [])

    async def aclose(self) -> None:
        """End what runs in the background."""
        await self.live.aclose()
        await self.bulks.aclose()
