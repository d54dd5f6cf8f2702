"""The audit log of a namespace: what users of the dashboard did."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aioqless.store import Store


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """One action or login. `id` orders entries, `when` is in seconds since 1970."""

    id: str
    when: float
    user: str
    action: str
    details: Mapping[str, Any]
    outcome: str


class AuditLog:
    """Adds and lists entries. Logins are kept apart, so that they never displace actions."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, user: str, action: str, details: Mapping[str, Any], outcome: str) -> None:
        """Add an action."""
        about = json.dumps(details)
        await self._store.trail_add(who=user, act=action, about=about, outcome=outcome)

    async def add_login(
        self, user: str, action: str, details: Mapping[str, Any], outcome: str
    ) -> None:
        """Add a login, a refused login, or a logout."""
        about = json.dumps(details)
        await self._store.trail_login(who=user, act=action, about=about, outcome=outcome)

    async def actions(self, *, before: str | None = None, count: int = 50) -> list[AuditEntry]:
        """Return actions, the latest first; only those before the entry with the id `before`."""
        return _entries(await self._store.trail_list(before=before, count=count))

    async def logins(self, *, before: str | None = None, count: int = 50) -> list[AuditEntry]:
        """Return logins, the latest first; only those before the entry with the id `before`."""
        return _entries(await self._store.trail_logins(before=before, count=count))


def _entries(records: list[dict[str, Any]]) -> list[AuditEntry]:
    return [
        AuditEntry(
            id=each["place"],
            when=each["when"],
            user=each["who"],
            action=each["act"],
            details=each["about"],
            outcome=each["outcome"],
        )
        for each in records
    ]
