"""Records actions and logins of users in the audit log, and logs each of them.

Logins are kept apart, so that they never displace actions.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NotRequired, TypedDict

from aioqless.client import REDIS_UNAVAILABLE, Client
from aioqless.contrib.dashboard.generated_commands import DashboardCommands
from aioqless.contrib.http import Identity
from aioqless.errors import AioqlessError
from aioqless.runtime.log import log
from aioqless.validation import to_text

MAX_LENGTH = 200  # characters of each value
MAX_READ = 1000  # entries in a call
BEGUN = "started: "  # begins the outcome of a bulk action's start
END = " (end)"  # of the name of a bulk action's end
UNRECORDED = ("data", "was", "back", "then", "stop")  # fields
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
        started: When it started, if it is a bulk action that has ended.
    """

    place: str
    when: float
    who: str
    act: str
    about: dict[str, str]
    outcome: str
    started: NotRequired[float]


async def read_entries(
    client: Client, *, logins: bool, before: str | None, count: int
) -> list[AuditEntry]:
    """Return actions, or logins, before an entry or from the end of the log, latest first."""
    commands = DashboardCommands(client.internals.store)
    read = commands.audit_log_logins if logins else commands.audit_log_list
    entries: list[AuditEntry] = await read(before=before, count=count)
    return entries


async def read_actions(
    client: Client, *, before: str | None, count: int
) -> tuple[list[AuditEntry], str | None]:
    """Return actions, as `read_entries` does; the start and the end of a bulk action are one.

    Returns:
        The actions, and before which entry there are more; None if there are none.
    """
    entries = await read_entries(client, logins=False, before=before, count=count + 1)
    older = entries[count - 1]["place"] if len(entries) > count else None
    entries = entries[:count]
    begun = {each["place"] for each in entries if each["outcome"].startswith(BEGUN)}
    ended, newer = _list_ended(entries), before
    at: str | None = None
    while newer and begun - ended:  # their ends are nearer to the end of the log
        page = await read_entries(client, logins=False, before=at, count=MAX_READ)
        ended |= _list_ended(page)
        if len(page) < MAX_READ or _order(at := page[-1]["place"]) <= _order(newer):
            break
    return [_join(each) for each in entries if each["place"] not in ended], older


def _join(entry: AuditEntry) -> AuditEntry:
    """Return the end of a bulk action with its start, and a start without an end as unfinished."""
    if entry["act"].endswith(END):
        about = dict(entry["about"])
        milliseconds, _, _ = about.pop("begun", "").partition("-")
        entry = {**entry, "act": entry["act"].removesuffix(END), "about": about}
        if milliseconds.isdecimal():
            entry["started"] = int(milliseconds) / 1000
    elif entry["outcome"].startswith(BEGUN):
        entry = {**entry, "outcome": f"{entry['outcome']}, unfinished"}
    return entry


def _list_ended(entries: Sequence[AuditEntry]) -> set[str]:
    return {each["about"].get("begun", "") for each in entries if each["act"].endswith(END)}


def _order(place: str) -> tuple[int, ...]:
    return tuple(map(int, place.split("-")))


async def record(
    client: Client, user: Identity, action: str, fields: Mapping[str, str], outcome: str
) -> str:
    """Record an action, and return the id of the entry; empty if that fails, which is logged.

    Job data is never recorded, only that it was changed.
    """
    details = {
        to_text(name[:MAX_LENGTH]): to_text(value[:MAX_LENGTH])
        for name, value in fields.items()
        if value and name not in UNRECORDED and not name.startswith(ARGUMENT)
    }
    if data := "".join(
        fields[name] for name in fields if name == "data" or name.startswith(ARGUMENT)
    ):
        details["data"] = f"{len(data)} characters"
    log.info(
        "web.action_performed", user=user.name, action=action, details=details, outcome=outcome
    )
    add = DashboardCommands(client.internals.store).audit_log_add
    return await _add(add, user.name, action, details, outcome[:MAX_LENGTH])


async def record_login(client: Client, user: str, action: str, address: str, outcome: str) -> None:
    """Record a login, a refused login, or a logout; a failure to record is logged."""
    if outcome == "refused":
        log.warning("web.login_refused", user=user, client=address, why="wrong token")
    elif action == "log-in":
        log.info("web.logged_in", user=user, client=address)
    else:
        log.info("web.logged_out", user=user, client=address)
    add = DashboardCommands(client.internals.store).audit_log_login
    await _add(add, user, action, {"address": address}, outcome)


async def _add(
    add: Callable[..., Awaitable[str]], who: str, act: str, about: Mapping[str, str], outcome: str
) -> str:
    try:
        return await add(who=who, act=act, about=json.dumps(about), outcome=outcome)
    except (AioqlessError, *REDIS_UNAVAILABLE) as error:  # such as a Redis whose memory is full
        log.error("web.audit_failed", user=who, action=act, why=str(error))
    return ""
