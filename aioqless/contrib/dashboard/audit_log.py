"""The trail: who did what, when, and what came of it. It is kept in Redis, and each act is logged
too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aioqless.client import Client
from aioqless.contrib.dashboard.access import Identity
from aioqless.errors import AioqlessError
from aioqless.log import log
from aioqless.redis.connection import AWAY
from aioqless.validation import readable

LONGEST = 200  # characters of each value


@dataclass(frozen=True, kw_only=True)
class Act:
    """Something that somebody did. `place` is where it stands in the trail, `when` in seconds since
    1970."""

    place: str
    when: float
    who: str
    act: str
    about: dict[str, Any]
    outcome: str


async def add(
    client: Client, who: Identity, act: str, about: Mapping[str, str], outcome: str
) -> None:
    """Note an act. Jobs' data never go into the trail, only that they were changed."""
    noted = {
        readable(name[:LONGEST]): readable(value[:LONGEST])
        for name, value in about.items()
        if value and name not in ("data", "was")
    }
    if about.get("data"):
        noted["data"] = f"{len(about['data'])} characters"
    log.info("web.acted", who=who.name, act=act, about=noted, outcome=outcome)
    await client.store.trail_add(
        who=who.name, act=act, about=json.dumps(noted), outcome=outcome[:LONGEST]
    )


async def add_login(client: Client, who: str, act: str, address: str, outcome: str) -> None:
    """Record a log-in, a refused one, or a log-out; apart from acts, which attempts to log in must
    never displace. One that can't be recorded is logged: Redis is away, or its memory is full."""
    if outcome == "refused":
        log_refused(who, address, "wrong name, password or token")
    elif act == "log-in":
        log.info("web.logged_in", who=who, client=address)
    else:
        log.info("web.logged_out", who=who, client=address)
    try:
        await client.store.trail_login(
            who=who,
            act=act,
            about=json.dumps({"address": address}),
            outcome=outcome,
        )
    except (AioqlessError, *AWAY) as lost:
        log.error("web.audit_failed", who=who, act=act, why=str(lost))


def log_refused(who: str, address: str, why: str) -> None:
    """Log a refused log-in."""
    log.warning("web.login_refused", who=who, client=address, why=why)


async def latest(
    client: Client, before: str | None, count: int, *, logins: bool = False
) -> list[Act]:
    """Return acts, or log-ins, the latest first; those before a place."""
    read = client.store.trail_logins if logins else client.store.trail_list
    return [Act(**each) for each in await read(before=before, count=count)]
