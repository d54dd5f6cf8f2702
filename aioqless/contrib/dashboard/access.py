"""Users of the dashboard, their roles, and how they are authenticated."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Self, TypeAlias

from starlette.requests import Request

from aioqless.contrib.dashboard import passwords

MIN_TOKEN_LENGTH = 16
MAX_NAME_LENGTH = 64
REDACTED_NAMES = (
    "*password*", "*passwd*", "*secret*", "*token*", "*api_key*", "*apikey*",
    "*authorization*", "*credential*", "*private_key*",
)  # fmt: skip


class Role(IntEnum):
    """What a user may do; each role includes those before it.

    READ sees everything except the job data that `Access.data_for` withholds. OPERATE acts on jobs,
    queues and workers. ADMIN changes the configuration, deletes many jobs at once, forgets queues,
    and reads the audit log.
    """

    READ = 1
    OPERATE = 2
    ADMIN = 3


@dataclass(frozen=True)
class Identity:
    """An authenticated user; the audit log records the name."""

    name: str
    role: Role


@dataclass(frozen=True)
class User:
    """A user with a role and a password hash as `aioqless web-user` prints it.

    Raises:
        ValueError: An invalid name or hash.
    """

    name: str
    role: Role
    password: str

    def __post_init__(self) -> None:
        if (
            not self.name
            or not self.name.isprintable()
            or len(self.name) > MAX_NAME_LENGTH
            or any(each.isspace() for each in self.name)
        ):
            raise ValueError(
                f"a user's name must be 1 to {MAX_NAME_LENGTH} printable characters without "
                f"spaces, not {self.name!r}"
            )
        passwords.validate(self.password)


Authenticate: TypeAlias = Callable[[Request], "Identity | Awaitable[Identity | None] | None"]


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who may use the dashboard.

    Without `users` and `authenticate`, any user of this machine who has the start-up token is an
    admin.

    Args:
        users: Users by name, who log in with a password.
        authenticate: Returns the user of a request, None for no user. For a dashboard that is
            mounted in an app with its own authentication.
        startup_token: At least 16 characters; default: generated for each dashboard.
        data_for: The lowest role that sees the data of jobs.
        redact: Patterns of names whose values are hidden from everybody, at any depth of job data
            and in strings about a job, such as the message of a failure.
        trusted_proxies: Addresses or networks of reverse proxies whose X-Forwarded-For and
            X-Forwarded-Proto are trusted.

    Raises:
        ValueError: Options that exclude each other, or an invalid one.
    """

    users: Mapping[str, User] = field(default_factory=dict)
    authenticate: Authenticate | None = None
    startup_token: str | None = None
    data_for: Role = Role.OPERATE
    redact: tuple[str, ...] = REDACTED_NAMES
    trusted_proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.users and self.authenticate:
            raise ValueError(
                "give users or authenticate, not both: an app's own authentication replaces the "
                "login page"
            )
        if self.startup_token is not None and not self.uses_startup_token:
            raise ValueError(
                "give a startup_token, or users or authenticate, not both: it is for a dashboard "
                "without users"
            )
        if self.startup_token is not None and (
            len(self.startup_token) < MIN_TOKEN_LENGTH or not self.startup_token.isprintable()
        ):
            raise ValueError(
                f"startup_token must have at least {MIN_TOKEN_LENGTH} printable characters "
                f"(got {len(self.startup_token)})"
            )
        if isinstance(self.trusted_proxies, str):
            raise TypeError(
                "trusted_proxies must be a list of addresses, not the text "
                f"{self.trusted_proxies!r}"
            )
        for each in self.trusted_proxies:
            try:
                ipaddress.ip_network(each)
            except ValueError:
                raise ValueError(
                    f"trusted proxy {each!r} must be an address or a network, such as 10.0.0.7 or "
                    "10.0.0.0/8"
                ) from None

    @property
    def uses_startup_token(self) -> bool:
        """Whether there are no users, and the start-up token admits as admin."""
        return not self.users and self.authenticate is None

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """Read users from a file with one line `name role hash` per user.

        Empty lines and lines that begin with # are ignored.

        Args:
            path: The file.

        Raises:
            ValueError: An invalid line, which the message names.
        """
        return cls(users=read_users(path.read_text("utf-8").splitlines(), str(path)))


def read_users(lines: Iterable[str], source: str) -> dict[str, User]:
    """Parse lines `name role hash`; raise ValueError, which names the source and the line."""
    users: dict[str, User] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            name, role, password = words
            if name in users:
                raise ValueError(f"{name} is there twice")
            users[name] = User(name, parse_role(role), password)
        except ValueError as error:
            reason = "must be: name role hash" if len(words) != 3 else str(error)
            raise ValueError(f"{source}, line {number}: {reason}") from None
    if not users:
        raise ValueError(f"{source}: has no users; `aioqless web-user NAME` prints a line for one")
    return users


def parse_role(text: str) -> Role:
    """Return the role of a name; raise ValueError."""
    try:
        return Role[text.upper()]
    except KeyError:
        raise ValueError(f"role {text!r} must be read, operate or admin") from None
