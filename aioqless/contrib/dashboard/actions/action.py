"""What an action is: a function with the role that it requires, and the request it gets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

from aioqless.client import Client
from aioqless.client.job import JobRecord
from aioqless.contrib.dashboard.dashboard import Dashboard
from aioqless.contrib.http import Identity, Role


@dataclass(frozen=True)
class ActionRequest:
    """A user's request for an action, with the fields of the form and the browser's session."""

    dashboard: Dashboard
    user: Identity
    form: Mapping[str, str]
    browser: str

    @property
    def client(self) -> Client:
        """The client of the dashboard."""
        return self.dashboard.client

    def text(self, name: str) -> str:
        """Return a required field; raise ValueError."""
        if not (value := self.form.get(name, "")).strip():
            raise ValueError(f"{name} is missing")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """Return a field as a number; raise ValueError."""
        text = self.form.get(name, "").strip()
        if not text and default is not None:
            return default
        with suppress(ValueError):
            if isfinite(number := float(text)):
                return number
        raise ValueError(f"{name} must be a number (got {text[:40]!r})")

    async def job(self) -> JobRecord:
        """Read the job of the form; raise ValueError when it does not exist."""
        jid = self.text("jid")
        if (job := await self.client.jobs.get(jid)) is None:
            raise ValueError(f"job {jid} no longer exists")
        return job

    @property
    def sees_data(self) -> bool:
        """Whether the user may see the data of jobs."""
        return self.user.role >= self.dashboard.data_for

    def check_may_see_data(self) -> None:
        """Raise PermissionError for users who would overwrite data that they can't see."""
        if not self.sees_data:
            raise PermissionError("your role may not see job data, so it may not change it")


@dataclass(frozen=True)
class Redirect:
    """A flash message, and the page of the dashboard to go to instead of the form's page."""

    message: str
    to: str


Perform: TypeAlias = Callable[[ActionRequest], Awaitable["str | Redirect"]]


@dataclass(frozen=True)
class Action:
    """An action that users with the role may perform. It returns a flash message.

    It is recorded in the audit log, unless it records itself, or changes only what a browser shows.
    """

    perform: Perform
    label: str
    role: Role = Role.OPERATE
    is_recorded: bool = True
