"""What a browser asks for: a page with its parameters, each of them held within its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from aioqless.client import Client
from aioqless.contrib.dashboard.access import Identity, Role
from aioqless.contrib.dashboard.page_state import Board

SIZE = 50
DEEPEST = 10_000_000
LONGEST = 512
MOST_FIELDS = 60


@dataclass(frozen=True)
class Asked:
    """A request for one page of the dashboard that is mounted at `root`. `client` reads for it:
    throttled where the page is live."""

    board: Board
    client: Client
    who: Identity
    root: str
    path: str
    query: Mapping[str, str]

    def text(self, name: str, default: str = "") -> str:
        """A parameter, cut where it is too long to be any name."""
        return self.query.get(name, default)[:LONGEST]

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number within limits; the default for what is none."""
        text = self.query.get(name, "")
        return (
            min(max(int(text), least), most)
            if text.isascii() and text.removeprefix("-").isdigit() and len(text) < 18
            else default
        )

    def one_of(self, name: str, known: tuple[str, ...]) -> str:
        """One of the known values; the first where it is none of them."""
        return value if (value := self.query.get(name, "")) in known else known[0]

    @property
    def offset(self) -> int:
        """How many entries of the list come before this page of it."""
        return self.number("offset", 0, 0, DEEPEST)

    def may(self, role: Role) -> bool:
        return self.who.role >= role

    @property
    def sees_data(self) -> bool:
        return self.who.role >= self.board.access.data_for

    @property
    def here(self) -> str:
        """The page's address within the dashboard."""
        return address(self.path, **self.query)


@dataclass(frozen=True)
class Page:
    """What a view found: which template shows it, under which title, with what. `live` ones are
    kept up to date."""

    template: str
    title: str
    values: Mapping[str, Any] = field(default_factory=dict)
    live: bool = True
    status: int = 200


def address(path: str, /, **query: object) -> str:
    """A path of the dashboard with its parameters; names from Redis may have any characters, and
    odd bytes."""
    given = {name: str(value) for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given, errors='surrogateescape')}" if given else path


def parameters(text: str) -> dict[str, str]:
    """The parameters of an address or a form. Raises ValueError for too many."""
    return dict(
        parse_qsl(
            text, keep_blank_values=True, errors="surrogateescape", max_num_fields=MOST_FIELDS
        )
    )
