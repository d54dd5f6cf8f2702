"""Who sent a request, and what they may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fnmatch import fnmatchcase
from typing import TypeAlias

from starlette.requests import Request


class Role(IntEnum):
    """What a user of the dashboard may do; each role includes those before it.

    NONE does not see the dashboard. READ sees everything except the job data that `data_for`
    withholds. OPERATE acts on jobs, queues and workers. ADMIN changes the configuration, deletes
    many jobs at once, forgets queues, and reads the audit log.
    """

    NONE = 0
    READ = 1
    OPERATE = 2
    ADMIN = 3


@dataclass(frozen=True)
class Identity:
    """Who sent a request.

    Attributes:
        name: Name, which the audit log records. In the HTTP API, jids begin with it: letters,
            digits and `_`.
        role: Role in the dashboard.
        may_put: Klasses that they may put by the HTTP API, as patterns such as `app.jobs.*`.
        may_read: Klasses of which they see all jobs in the HTTP API.
        may_reserve: Task queues in which they may reserve jobs.
        jids: Further jobs that a browser's token sees.
        issuer: Whose token issued that of this browser, which may do no more.
    """

    name: str
    role: Role = Role.NONE
    may_put: Sequence[str] = ()
    may_read: Sequence[str] = ()
    may_reserve: Sequence[str] = ()
    jids: Sequence[str] = ()
    issuer: Identity | None = None


Identify: TypeAlias = Callable[[Request], "Identity | Awaitable[Identity | None] | None"]


class IdentityRefused(Exception):
    """A request that claims an identity from where none may come; the message says why."""


def parse_role(text: str) -> Role:
    """Return the role of a name; raise ValueError."""
    try:
        return Role[text.upper()]
    except KeyError:
        raise ValueError(f"role {text!r} must be none, read, operate or admin") from None


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name fits one of the patterns."""
    return any(fnmatchcase(name, each) for each in patterns)
