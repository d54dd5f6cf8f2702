"""A requested page of the dashboard, and its validated parameters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar
from urllib.parse import parse_qsl, urlencode

from aioqless.client import Client, Overview
from aioqless.contrib.dashboard.dashboard import Dashboard
from aioqless.contrib.http import Identity, Role

T = TypeVar("T")

PAGE_SIZE = 50
MAX_OFFSET = 10_000_000
MAX_LENGTH = 512
MAX_FIELDS = 60


@dataclass(frozen=True)
class PageRequest:
    """A request for one page of the dashboard that is mounted at `root`.

    `client` reads for the page: over a throttled connection where the page is live. Live pages are
    shared, so only others are those of a `browser`, by its session.
    """

    dashboard: Dashboard
    client: Client
    user: Identity
    root: str
    path: str
    query: Mapping[str, str]
    browser: str = ""

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter, truncated to the maximum length of a name."""
        return self.query.get(name, default)[:MAX_LENGTH]

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """Return an integer parameter clamped to limits; the default for anything else."""
        text = self.query.get(name, "")
        if text.isascii() and text.removeprefix("-").isdigit() and len(text) < 18:
            return min(max(int(text), least), most)
        return default

    def one_of(self, name: str, known: tuple[str, ...]) -> str:
        """Return one of the known values; the first for an unknown one."""
        return value if (value := self.query.get(name, "")) in known else known[0]

    async def read_overview(self) -> Overview:
        """Return the overview that all pages share."""
        return await self.dashboard.read_overview(live=self.is_live)

    async def shared(self, key: object, read: Callable[[], Awaitable[T]]) -> T:
        """Return what `read` returns; for a live page, what it returned a short time ago."""
        return await (self.dashboard.cached(key, read) if self.is_live else read())

    @property
    def is_live(self) -> bool:
        """Whether the page is read again to keep it up to date, and not for a request."""
        return self.client is not self.dashboard.client

    @property
    def offset(self) -> int:
        """The number of list entries before this page of the list."""
        return self.number("offset", 0, 0, MAX_OFFSET)

    def may(self, role: Role) -> bool:
        """Return whether the user has a role."""
        return self.user.role >= role

    @property
    def sees_data(self) -> bool:
        """Whether the user may see the data of jobs."""
        return self.user.role >= self.dashboard.data_for

    @property
    def address(self) -> str:
        """The page's address within the dashboard."""
        return address(self.path, **self.query)


@dataclass(frozen=True)
class Page:
    """A page to render: its template, title and values. A `live` page is kept up to date.

    A `large` one, whose size jobs determine, is rendered in a thread.
    """

    template: str
    title: str
    values: Mapping[str, Any] = field(default_factory=dict)
    live: bool = True
    status: int = 200
    large: bool = False


View: TypeAlias = Callable[[PageRequest], Awaitable[Page]]


def address(path: str, /, **query: object) -> str:
    """Return a path of the dashboard with its non-empty parameters, URL-encoded.

    Names from Redis may contain any characters and undecodable bytes.
    """
    given = {name: str(value) for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given, errors='surrogateescape')}" if given else path


def parse_parameters(text: str) -> dict[str, str]:
    """Parse the parameters of an address or a form; raise ValueError for too many."""
    return dict(
        parse_qsl(text, keep_blank_values=True, errors="surrogateescape", max_num_fields=MAX_FIELDS)
    )
