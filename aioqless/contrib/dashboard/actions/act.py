"""What an act is: a name in an address, the role that it takes, a function that does it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

from aioqless.client import Client
from aioqless.client.job import Job
from aioqless.contrib.dashboard.access import Identity, Role
from aioqless.contrib.dashboard.page_state import Board


@dataclass(frozen=True)
class Doing:
    """One act on its way: who does it, and the fields of the form. `elsewhere` is where the browser
    goes then, if not back."""

    board: Board
    who: Identity
    form: Mapping[str, str]

    @property
    def client(self) -> Client:
        return self.board.client

    def text(self, name: str) -> str:
        """A field that must be filled in. Raises ValueError."""
        if not (value := self.form.get(name, "")):
            raise ValueError(f"{name} is missing")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A field that is a number. Raises ValueError."""
        text = self.form.get(name, "").strip()
        if not text and default is not None:
            return default
        with suppress(ValueError):
            if isfinite(number := float(text)):
                return number
        raise ValueError(f"{name} must be a number, not {text[:40]!r}")

    async def job(self) -> Job:
        """The job of the form. Raises ValueError when it is gone."""
        jid = self.text("jid")
        if (job := await self.client.jobs.get(jid)) is None:
            raise ValueError(f"job {jid} is gone by now")
        return job

    def may_see_data(self) -> None:
        """Raises PermissionError for who may not: they would overwrite what they can't see."""
        if self.who.role < self.board.access.data_for:
            raise PermissionError("you may not see the data of jobs, so you can't change them")


Perform: TypeAlias = Callable[[Doing], Awaitable["str | Done"]]


@dataclass(frozen=True)
class Done:
    """What was done, and which page of the dashboard to go to then."""

    said: str
    to: str


@dataclass(frozen=True)
class Act:
    """An act as it stands in the table."""

    role: Role
    perform: Perform


ACTS: dict[str, Act] = {}


def act(name: str, role: Role = Role.OPERATE) -> Callable[[Perform], Perform]:
    """Put a function into the table of acts."""

    def entered(perform: Perform) -> Perform:
        ACTS[name] = Act(role, perform)
        return perform

    return entered
