"""Templates: pages as HTML, everything in them escaped."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import aioqless.web.drawing as drawing
import aioqless.web.wording as wording
from aioqless.web.access import Role
from aioqless.web.asked import Asked, Page, address

HERE = Path(__file__).parent
NAVIGATION = (
    ("/", "Overview"), ("/queues", "Queues"), ("/failures", "Failures"), ("/workers", "Workers"), ("/recurring", "Recurring"),
    ("/completed", "Completed"), ("/tracked", "Tracked"), ("/tags", "Tags"), ("/redis", "Redis"), ("/config", "Configuration"),
    ("/trail", "Trail"),
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
    )
    words = ("number", "short", "size", "span", "moment", "day", "event", "more", "last_line")
    found.filters |= {name: getattr(wording, name) for name in words}
    found.globals |= {"drawing": drawing, "Role": Role, "NAVIGATION": NAVIGATION}
    return found


class Templates:
    """Makes HTML of pages."""

    def __init__(self) -> None:
        self._templates = _templates()

    def whole(self, page: Page, asked: Asked, token: str, notes: Sequence[tuple[str, str]] = ()) -> str:
        """A page from its first tag to its last."""
        return self._templates.get_template(page.template).render(**_common(page, asked, token), notes=notes, **page.values)

    def part(self, page: Page, asked: Asked, token: str) -> str:
        """What is within its `main`, which is what changes."""
        template = self._templates.get_template(page.template)
        context = template.new_context({**_common(page, asked, token), "notes": (), **page.values})
        return "".join(template.blocks["main"](context))


def _common(page: Page, asked: Asked, token: str) -> dict[str, Any]:
    root = asked.root

    def link(path: str, /, **query: object) -> str:
        return root + address(path, **query)

    return {
        "asked": asked, "page": page, "link": link, "token": Markup(token), "root": root, "who": asked.who,
        "may_operate": asked.may(Role.OPERATE), "may_administer": asked.may(Role.ADMIN), "here": asked.here,
        "sample": asked.board.sampler.latest, "bulks": asked.board.bulks, "redaction": asked.board.redaction,
        "has_users": bool(asked.board.access.users),
    }  # fmt: skip
