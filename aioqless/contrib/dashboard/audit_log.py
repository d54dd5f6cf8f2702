"""Records actions and logins of users in the audit log, and logs each of them.

Logins are kept apart, so that they never displace actions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypedDict

from aioqless.client import REDIS_UNAVAILABLE, Client
from aioqless.contrib.dashboard.access import Identity
from aioqless.contrib.dashboard.commands import DashboardCommands
from aioqless.errors import AioqlessError
from aioqless.runtime.log import log
from aioqless.validation import to_text

MAX_LENGTH = 200  # characters of each value
ARGUMENT = "arg-"  # begins the name of a field with an argument of a new job


class AuditEntry(TypedDict):
    """An action or a login.

    Attributes:
        place: Id that orders the entries.
        when: When it was, in seconds since 1970.
        who: Name of the user.
        act: Name of the action.
        about: What the action was about, or where the login came from.
        outcome: What came of it.
    """

    place: str
    when: float
    who: str
    act: str
    about: dict[str, str]
    outcome: str


async def read_entries(
    client: Client, *, logins: bool, before: str | None, count: int
) -> list[AuditEntry]:
    """Return actions, or logins, latest first.

    Args:
        client: A client of the namespace.
        logins: Whether to read the logins.
        before: Id of the entry before which to start; None: the end of the log.
        count: Maximum number of entries.
    """
    commands = DashboardCommands(client.internals.store)
    read = commands.audit_log_logins if logins else commands.audit_log_list
    entries: list[AuditEntry] = await read(before=before, count=count)
    return entries


async def record(
    client: Client, user: Identity, action: str, fields: Mapping[str, str], outcome: str
) -> None:
    """Record an action. Job data is never recorded, only that it was changed."""
    details = {
        to_text(name[:MAX_LENGTH]): to_text(value[:MAX_LENGTH])
        for name, value in fields.items()
        if value and name not in ("data", "was") and not name.startswith(ARGUMENT)
    }
    if data := "".join(
        fields[name] for name in fields if name == "data" or name.startswith(ARGUMENT)
    ):
        details["data"] = f"{len(data)} characters"
    log.info(
        "web.action_performed", user=user.name, action=action, details=details, outcome=outcome
    )
    await DashboardCommands(client.internals.store).audit_log_add(
        who=user.name, act=action, about=json.dumps(details), outcome=outcome[:MAX_LENGTH]
    )


async def record_login(client: Client, user: str, action: str, address: str, outcome: str) -> None:
    """Record a login, a refused login, or a logout.

    A failure to record is logged and not raised: Redis is unavailable, or its memory is full.
    """
    if outcome == "refused":
        log_refused_login(user, address, "wrong name, password or token")
    elif action == "log-in":
        log.info("web.logged_in", user=user, client=address)
    else:
        log.info("web.logged_out", user=user, client=address)
    try:
        await DashboardCommands(client.internals.store).audit_log_login(
            who=user, act=action, about=json.dumps({"address": address}), outcome=outcome
        )
    except (AioqlessError, *REDIS_UNAVAILABLE) as error:
        log.error("web.audit_failed", user=user, action=action, why=str(error))


def log_refused_login(user: str, address: str, why: str) -> None:
    """Log a refused login."""
    log.warning("web.login_refused", user=user, client=address, why=why)
