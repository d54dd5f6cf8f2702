"""Rendering: from what is asked to HTML, everything in it escaped."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

import aioqless.contrib.dashboard.charts as drawing
import aioqless.contrib.dashboard.formatting as wording
from aioqless.client.job.record import meaning
from aioqless.contrib.dashboard.access import Role
from aioqless.contrib.dashboard.page_request import Asked, Page, address
from aioqless.errors import InvalidArgument, NoSuchJob
from aioqless.validation import plain

View: TypeAlias = Callable[[Asked], Awaitable[Page]]

HERE = Path(__file__).parent
NAVIGATION = (
    ("/", "Overview"), ("/queues", "Queues"), ("/failures", "Failures"), ("/workers", "Workers"), ("/recurring", "Recurring"),
    ("/completed", "Completed"), ("/tracked", "Tracked"), ("/tags", "Tags"), ("/redis", "Redis"), ("/config", "Configuration"),
    ("/trail", "Audit log"),
)  # fmt: skip


@cache
def _templates() -> Environment:
    """All of a process, each compiled once."""
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_visible,
    )
    words = (
        "number",
        "short",
        "size",
        "span",
        "moment",
        "day",
        "event",
        "more",
        "last_line",
        "counted",
    )
    found.filters |= {name: getattr(wording, name) for name in words} | {
        "meaning": meaning,
        "exact": escape,
    }
    found.globals |= {"drawing": drawing, "Role": Role, "NAVIGATION": NAVIGATION}
    return found


def _visible(value: Any) -> Any:
    """Escape what is invisible or changes the direction of text in whatever a template shows. What
    forms send back is `exact`."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return plain(value.replace("\r\n", "\n"), lines=True)


class Rendering:
    """Owns the views, and makes HTML of what they find."""

    def __init__(self, views: Mapping[str, View]) -> None:
        self._views = views
        self._templates = _templates()
        self._placeholder = (
            f"token-{secrets.token_hex(16)}"  # in contents that several browsers share
        )

    async def whole(
        self, asked: Asked, token: str, notes: Sequence[tuple[str, str]]
    ) -> tuple[str, int]:
        """A page from its first tag to its last for one browser, and its status."""
        page = await self._found(asked)
        return self.of(page, asked, token, notes), page.status

    def of(
        self, page: Page, asked: Asked, token: str, notes: Sequence[tuple[str, str]] = ()
    ) -> str:
        """The same of what was found already."""
        return self._templates.get_template(page.template).render(
            {**_common(page, asked, token), "notes": notes, **page.values}
        )

    async def contents(self, asked: Asked) -> str:
        """What is within its `main`, which is what changes, for all browsers; `for_browser` makes
        it one's own."""
        return self._part(await self._found(asked), asked)

    def away(self, asked: Asked, error: Exception) -> str:
        """The same while Redis is away."""
        return self._part(Page("away.html", "Redis is away", {"why": str(error)}), asked)

    def for_browser(self, text: str, token: str) -> str:
        """Shared contents with a browser's own token."""
        return text.replace(self._placeholder, token)

    async def _found(self, asked: Asked) -> Page:
        """What a view finds. What isn't there, or can't be asked, is a page too."""
        try:
            if asked.path not in self._views:
                raise KeyError(asked.path)
            return await self._views[asked.path](asked)
        except (NoSuchJob, KeyError) as gone:
            why = gone.told() if isinstance(gone, NoSuchJob) else "There is no such page."
            return Page("gone.html", "Not there", {"why": why}, live=False, status=404)
        except InvalidArgument as wrong:
            return Page(
                "gone.html", "Can't be asked", {"why": wrong.told()}, live=False, status=400
            )

    def _part(self, page: Page, asked: Asked) -> str:
        template = self._templates.get_template(page.template)
        context = template.new_context(
            {**_common(page, asked, self._placeholder), "notes": (), **page.values}
        )
        return "".join(template.blocks["main"](context))


def _common(page: Page, asked: Asked, token: str) -> dict[str, Any]:
    root = asked.root

    def link(path: str, /, **query: object) -> str:
        return root + address(path, **query)

    return {
        "asked": asked, "page": page, "link": link, "token": Markup(token), "root": root, "who": asked.who,
        "may_operate": asked.may(Role.OPERATE), "may_administer": asked.may(Role.ADMIN), "here": asked.here,
        "sample": asked.board.sampler.latest, "bulks": asked.board.bulks, "redaction": asked.board.redaction,
        "now": time.time(), "logs_in": asked.board.access.authenticate is None,
        "by_token": asked.board.access.open,
    }  # fmt: skip
