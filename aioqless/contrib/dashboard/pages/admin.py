"""What is to be kept in order: configuration, Redis itself, the trail of what people did."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import aioqless.contrib.dashboard.audit_log as trail_
from aioqless.client.config import ABOUT
from aioqless.contrib.dashboard.access import Role
from aioqless.contrib.dashboard.page_request import SIZE, Asked, Page
from aioqless.store.composer import compose
from aioqless.store.header import command_names


async def config(asked: Asked) -> Page:
    options = sorted((await asked.client.config.all()).items())
    return Page(
        "config.html",
        "Configuration",
        {"options": options[:1000], "about": ABOUT, "edit": asked.text("edit")},
        live=False,
    )


async def redis(asked: Asked) -> Page:
    sample = await asked.board.sampler.fresh(asked.client)
    return Page(
        "redis.html",
        "Redis",
        {"health": sample.health, "slow": await _slow(asked), "where": asked.client.where["url"]},
    )


async def _slow(asked: Asked) -> list[dict[str, Any]]:
    """The slowest commands of late, without their arguments: job's data may be among them."""
    entries = await asked.client.store.connection.execute("SLOWLOG", "GET", 20)
    found = []
    for entry in entries:
        words = [word.decode("utf-8", "replace") for word in entry[3][:2]]
        name = (
            scripts(asked.client.namespace).get(words[1])
            if len(words) > 1 and words[0].upper() == "EVALSHA"
            else None
        )
        found.append(
            {
                "when": entry[1],
                "seconds": entry[2] / 1e6,
                "what": f"script {name}" if name else words[0].upper(),
                "script": name,
            }
        )
    return found


@cache
def scripts(namespace: str) -> dict[str, str]:
    """The names of our scripts by their SHA, as Redis logs them."""
    texts = {name: compose(name, namespace).text for name in command_names()}
    return {
        hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(): name
        for name, text in texts.items()
    }


async def trail(asked: Asked) -> Page:
    if not asked.may(Role.ADMIN):
        return Page(
            "gone.html",
            "Not for you",
            {"why": "The audit log is for admins."},
            live=False,
            status=403,
        )
    before, logins = asked.text("before"), asked.one_of("kind", ("acts", "logins")) == "logins"
    acts = await trail_.latest(asked.client, before or None, SIZE + 1, logins=logins)
    return Page(
        "trail.html",
        "Audit log",
        {"acts": acts[:SIZE], "further": len(acts) > SIZE, "logins": logins},
    )
