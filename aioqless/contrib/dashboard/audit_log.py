"""Records actions and logins of users in the audit log, and logs each of them."""

from __future__ import annotations

from collections.abc import Mapping

from aioqless.client import REDIS_UNAVAILABLE, Client
from aioqless.contrib.dashboard.access import Identity
from aioqless.errors import AioqlessError
from aioqless.runtime.log import log
from aioqless.validation import to_text

MAX_LENGTH = 200  # characters of each value


async def record(
    client: Client, user: Identity, action: str, fields: Mapping[str, str], outcome: str
) -> None:
    """Record an action. Job data is never recorded, only that it was changed."""
    details = {
        to_text(name[:MAX_LENGTH]): to_text(value[:MAX_LENGTH])
        for name, value in fields.items()
        if value and name not in ("data", "was")
    }
    if fields.get("data"):
        details["data"] = f"{len(fields['data'])} characters"
    log.info(
        "web.action_performed", user=user.name, action=action, details=details, outcome=outcome
    )
    await client.audit_log.add(user.name, action, details, outcome[:MAX_LENGTH])


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
        await client.audit_log.add_login(user, action, {"address": address}, outcome)
    except (AioqlessError, *REDIS_UNAVAILABLE) as error:
        log.error("web.audit_failed", user=user, action=action, why=str(error))


def log_refused_login(user: str, address: str, why: str) -> None:
    """Log a refused login."""
    log.warning("web.login_refused", user=user, client=address, why=why)
