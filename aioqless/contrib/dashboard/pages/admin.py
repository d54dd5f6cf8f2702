"""Administration: the configuration, the Redis server, the audit log."""

from __future__ import annotations

from aioqless.client.config import describe_option
from aioqless.contrib.dashboard.audit_log import read_actions, read_entries
from aioqless.contrib.dashboard.page_request import PAGE_SIZE, Page, PageRequest
from aioqless.contrib.http import Role

MAX_OPTIONS = 1000


async def show_config(request: PageRequest) -> Page:
    """Show the configuration that all workers and clients share."""
    options = sorted((await request.client.config.all()).items())
    values = {
        "options": options[:MAX_OPTIONS],
        "describe": describe_option,
        "edit": request.text("edit"),
    }
    return Page("config.html", "Configuration", values, live=False)


async def show_redis(request: PageRequest) -> Page:
    """Show the state of Redis and its slowest commands."""
    overview = await request.read_overview()
    values = {
        "server": overview.server,
        "slow": await request.client.server.slow_commands(),
        "where": request.client.endpoint["url"],
    }
    return Page("redis.html", "Redis", values)


async def show_audit_log(request: PageRequest) -> Page:
    """Show what users did, or who logged in."""
    if not request.may(Role.ADMIN):
        why = {"why": "The audit log requires the admin role."}
        return Page("not_found.html", "Access denied", why, live=False, status=403)
    before = request.text("before") or None
    logins = request.one_of("kind", ("acts", "logins")) == "logins"
    if logins:
        entries = await read_entries(request.client, logins=True, before=before, count=PAGE_SIZE)
        older = entries[-1]["place"] if len(entries) == PAGE_SIZE else None
    else:
        entries, older = await read_actions(request.client, before=before, count=PAGE_SIZE)
    return Page(
        "audit_log.html", "Audit log", {"logins": logins, "entries": entries, "older": older}
    )
