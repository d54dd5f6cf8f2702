"""Who may look, operate and administer, and how they are known."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Self, TypeAlias

from starlette.requests import Request

import aioqless.contrib.dashboard.passwords as passwords

SHORTEST_TOKEN = 16


class Role(IntEnum):
    """What somebody may do. Each may do what those before it may.

    READ looks at everything but what `data_for` keeps from them. OPERATE acts on jobs, queues and
    workers. ADMIN changes the configuration, deletes many jobs at once, forgets queues, and reads
    the trail of what others did."""

    READ = 1
    OPERATE = 2
    ADMIN = 3


@dataclass(frozen=True)
class Identity:
    """Somebody who is known, by the name that goes into the trail."""

    name: str
    role: Role


@dataclass(frozen=True)
class User:
    """A name, the hash of a password as `aioqless web-user` makes it, and a role."""

    name: str
    role: Role
    password: str

    def __post_init__(self) -> None:
        if (
            not self.name
            or not self.name.isprintable()
            or len(self.name) > 64
            or any(each.isspace() for each in self.name)
        ):
            raise ValueError(
                f"a user's name must be 1 to 64 printable characters without spaces, not {self.name!r}"
            )
        passwords.checked(self.password)


Authenticate: TypeAlias = Callable[[Request], "Identity | Awaitable[Identity | None] | None"]


@dataclass(frozen=True, kw_only=True)
class Access:
    """How people are known: by `users`, who log in, or by `authenticate`, a function of the app
    that the dashboard is part of: it says from a request who its user is, None for no user. Without
    either, any user of this machine with the start-up token is an admin.

    `startup_token` is that token, of 16 characters or more; by default a new one for each
    dashboard. `data_for` is who sees jobs' data; `redact` are patterns of names whose values nobody
    is shown, wherever in the data they are, nor in what is told of a job, such as a failure's
    message. `trusted_proxies` are addresses or networks of reverse proxies whose X-Forwarded-For
    and X-Forwarded-Proto count."""

    users: Mapping[str, User] = field(default_factory=dict)
    authenticate: Authenticate | None = None
    startup_token: str | None = None
    data_for: Role = Role.OPERATE
    redact: tuple[str, ...] = (
        "*password*", "*passwd*", "*secret*", "*token*", "*api_key*", "*apikey*", "*authorization*", "*credential*", "*private_key*",
    )  # fmt: skip
    trusted_proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.users and self.authenticate:
            raise ValueError(
                "give users or authenticate, not both: an app's own way to know people replaces the page for logging in"
            )
        if self.startup_token is not None and not self.open:
            raise ValueError(
                "give a startup_token, or users or authenticate, not both: it is for a dashboard without users"
            )
        if self.startup_token is not None and (
            len(self.startup_token) < SHORTEST_TOKEN or not self.startup_token.isprintable()
        ):
            raise ValueError(
                f"startup_token must have at least {SHORTEST_TOKEN} printable characters (got {len(self.startup_token)})"
            )
        if isinstance(self.trusted_proxies, str):
            raise TypeError(
                f"trusted_proxies must be a list of addresses, not the text {self.trusted_proxies!r}"
            )
        for each in self.trusted_proxies:
            try:
                ipaddress.ip_network(each)
            except ValueError:
                raise ValueError(
                    f"trusted proxy {each!r} must be an address or a network, such as 10.0.0.7 or 10.0.0.0/8"
                ) from None

    @property
    def open(self) -> bool:
        """Whether there are no users, and a token stands for all of them."""
        return not self.users and self.authenticate is None

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """Users from a file with a line `name role hash` for each; empty lines and those that begin
        with # are left out. Raises ValueError with the line at fault."""
        return cls(users=read_users(path.read_text("utf-8").splitlines(), str(path)))


def read_users(lines: Iterable[str], where: str) -> dict[str, User]:
    """Users of lines `name role hash`. Raises ValueError."""
    users: dict[str, User] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            name, role, password = words
            if name in users:
                raise ValueError(f"{name} is there twice")
            users[name] = User(name, role_of(role), password)
        except ValueError as wrong:
            why = "must be: name role hash" if len(words) != 3 else str(wrong)
            raise ValueError(f"{where}, line {number}: {why}") from None
    if not users:
        raise ValueError(f"{where}: has no users; `aioqless web-user NAME` prints a line for one")
    return users


def role_of(text: str) -> Role:
    """A role by its name. Raises ValueError."""
    try:
        return Role[text.upper()]
    except KeyError:
        raise ValueError(f"role {text!r} must be read, operate or admin") from None
