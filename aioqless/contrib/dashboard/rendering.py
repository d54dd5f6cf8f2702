"""Renders pages as HTML, with everything in them escaped."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from aioqless.cli.presentation.formatting import format_duration, last_line, pluralize
from aioqless.client.job.state import explain_failure
from aioqless.contrib.dashboard import charts, formatting
from aioqless.contrib.dashboard.actions import action_name
from aioqless.contrib.dashboard.page_request import Page, PageRequest, View, address
from aioqless.contrib.http import Role
from aioqless.errors import InvalidArgument, NoSuchJob
from aioqless.validation import plain

TEMPLATES = Path(__file__).parent / "templates"
FILTERS = (
    "clock", "cron_words", "day", "event_details", "field_name", "filter_word", "number", "short",
    "size", "state_name", "timestamp",
)  # fmt: skip
NAVIGATION = (
    ("/", "Overview"), ("/queues", "Queues"), ("/jobs", "Jobs"), ("/failures", "Failures"),
    ("/classes", "Classes"), ("/workers", "Workers"), ("/recurring", "Recurring"),
    ("/tracked", "Tracked"), ("/sets", "Workflows"), ("/tags", "Tags"), ("/redis", "Redis"),
    ("/config", "Configuration"), ("/audit-log", "Audit log"),
)  # fmt: skip


@cache
def _templates() -> Environment:
    """Return the templates of this process, each compiled once."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_show_invisible,
    )
    environment.filters |= {name: getattr(formatting, name) for name in FILTERS}
    environment.filters |= {
        "action_name": action_name,
        "duration": format_duration,
        "explain_failure": explain_failure,
        "last_line": last_line,
        "pluralize": pluralize,
        "exact": escape,
    }
    environment.globals |= {
        "charts": charts,
        "duration": format_duration,
        "short": formatting.short,
        "size": formatting.size,
        "Role": Role,
        "NAVIGATION": NAVIGATION,
    }
    return environment


def _show_invisible(value: Any) -> Any:
    """Escape characters that are invisible or change the direction of text.

    Values that forms send back go through the filter `exact` instead.
    """
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return plain(value.replace("\r\n", "\n"), lines=True)


class Renderer:
    """Calls the views and renders their pages."""

    def __init__(self, views: Mapping[str, View]) -> None:
        self._views = views
        self._templates = _templates()
        # stands for the token in contents that several browsers share
        self._placeholder = f"token-{secrets.token_hex(16)}"

    async def render_page(
        self, request: PageRequest, token: str, messages: Sequence[tuple[str, str]]
    ) -> tuple[str, int]:
        """Return a whole page for one browser, and its HTTP status."""
        page = await self._view(request)
        if page.large:
            html = await asyncio.to_thread(self.render, page, request, token, messages)
        else:
            html = self.render(page, request, token, messages)
        return html, page.status

    def render(
        self, page: Page, request: PageRequest, token: str, messages: Sequence[tuple[str, str]] = ()
    ) -> str:
        """Return the HTML of a page that a view has returned."""
        return self._templates.get_template(page.template).render(
            {**_context(page, request, token), "messages": messages, **page.values}
        )

    async def render_contents(self, request: PageRequest) -> str:
        """Return the contents of `main`, which change; `insert_token` makes them a browser's."""
        page = await self._view(request)
        if page.large:
            return await asyncio.to_thread(self._render_main, page, request)
        return self._render_main(page, request)

    def render_unavailable(self, request: PageRequest, error: Exception) -> str:
        """Return the contents of `main` for an error such as an outage of Redis."""
        page = Page("unavailable.html", "Redis is unavailable", {"why": str(error)})
        return self._render_main(page, request)

    def insert_token(self, text: str, token: str) -> str:
        """Insert a browser's token into shared contents."""
        return text.replace(self._placeholder, token)

    async def _view(self, request: PageRequest) -> Page:
        """Return the page of a request; there are pages for unknown and invalid ones, too."""
        try:
            if request.path not in self._views:
                raise KeyError(request.path)
            return await self._views[request.path](request)
        except (NoSuchJob, KeyError) as error:
            why = error.describe() if isinstance(error, NoSuchJob) else "There is no such page."
            return Page("not_found.html", "Not found", {"why": why}, live=False, status=404)
        except InvalidArgument as error:
            values = {"why": error.describe()}
            return Page("not_found.html", "Can't be asked", values, live=False, status=400)

    def _render_main(self, page: Page, request: PageRequest) -> str:
        template = self._templates.get_template(page.template)
        context = template.new_context(
            {**_context(page, request, self._placeholder), "messages": (), **page.values}
        )
        return "".join(template.blocks["main"](context))


def _context(page: Page, request: PageRequest, token: str) -> dict[str, Any]:
    """Return the values that every template gets."""
    dashboard, root = request.dashboard, request.root

    def link(path: str, /, **query: object) -> str:
        return root + address(path, **query)

    return {
        "request": request,
        "page": page,
        "link": link,
        "token": Markup(token),
        "root": root,
        "user": request.user,
        "may_operate": request.may(Role.OPERATE),
        "may_administer": request.may(Role.ADMIN),
        "here": request.address,
        "overview": dashboard.overviews.latest,
        "handlers": dashboard.handlers,
        "bulk_actions": dashboard.bulk_actions,
        "redaction": dashboard.redaction,
        "now": time.time(),
        "can_log_out": dashboard.identification.tokens is not None,
    }
