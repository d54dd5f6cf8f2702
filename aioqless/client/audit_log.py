"""The audit log of a namespace: what users of the dashboard did."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from aioqless.client.job_data import Json
from aioqless.store import Store


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """An action or a login.

    Attributes:
        id: Id that orders the entries.
        when: When it was, in seconds since 1970.
        user: Name of the user.
        action: Name of the action.
        details: What the action was about.
        outcome: What came of it.
    """

    id: str
    when: float
    user: str
    action: str
    details: Mapping[str, Json]
    outcome: str


class _EntryRecord(TypedDict):
    place: str
    when: float
    who: str
    act: str
    about: dict[str, Json]
    outcome: str


class AuditLog:
    """Adds and lists entries. Logins are kept apart, so that they never displace actions."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(
        self, user: str, action: str, details: Mapping[str, object], outcome: str
    ) -> None:
        """Add an action.

        Args:
            user: Name of the user.
            action: Name of the action.
            details: What it was about, as JSON values.
            outcome: What came of it.
        """
        about = json.dumps(details)
        await self._store.audit_log_add(who=user, act=action, about=about, outcome=outcome)

    async def add_login(
        self, user: str, action: str, details: Mapping[str, object], outcome: str
    ) -> None:
        """Add a login, a refused login, or a logout.

        Args:
            user: Name of the user.
            action: Name of the action.
            details: Where it came from, as JSON values.
            outcome: What came of it.
        """
        about = json.dumps(details)
        await self._store.audit_log_login(who=user, act=action, about=about, outcome=outcome)

    async def actions(self, *, before: str | None = None, count: int = 50) -> list[AuditEntry]:
        """Return actions, latest first.

        Args:
            before: Id of the entry before which to start; default: the end of the log.
            count: Maximum number of entries.
        """
        return _read_entries(await self._store.audit_log_list(before=before, count=count))

    async def logins(self, *, before: str | None = None, count: int = 50) -> list[AuditEntry]:
        """Return logins, latest first.

        Args:
            before: Id of the entry before which to start; default: the end of the log.
            count: Maximum number of entries.
        """
        return _read_entries(await self._store.audit_log_logins(before=before, count=count))


def _read_entries(records: list[_EntryRecord]) -> list[AuditEntry]:
    return [
        AuditEntry(
            id=record["place"],
            when=record["when"],
            user=record["who"],
            action=record["act"],
            details=record["about"],
            outcome=record["outcome"],
        )
        for record in records
    ]
