"""A person, in one of the sessions that the person may have."""

from __future__ import annotations

from dataclasses import dataclass

from aioqless import validation

LONGEST = 64


@dataclass(frozen=True)
class Person:
    """Somebody who works: a name that colleagues know, and a session (a browser's tab, a program).
    What a session reserved is that session's alone; what a name has without one, as what was handed
    over to it, goes to the first of its sessions that asks. Raises ValueError for a name of more
    than 64 characters or with an `@`, and for a session that can't be a name."""

    name: str
    session: str = ""

    def __post_init__(self) -> None:
        validation.checked("a person's name", self.name)
        if "@" in self.name or len(self.name) > LONGEST or self.name != self.name.strip():
            raise ValueError(
                f"a person's name {self.name[:70]!r} must have at most {LONGEST} characters, no '@', and no space at its ends"
            )
        if self.session:
            validation.checked("session", self.session)

    @property
    def worker(self) -> str:
        """The name that the person's locks are held under: `name`, or `name@session`."""
        return f"{self.name}@{self.session}" if self.session else self.name

    def request_id(self, request: str | None) -> str | None:
        """What makes a call one that may be repeated, as an argument of scripts; `request` is this
        session's own name for it."""
        return None if request is None else f"{self.worker} {request}:1"

    @classmethod
    def of(cls, person: Person | str) -> Person:
        """A person, also from a name alone."""
        return person if isinstance(person, Person) else cls(person)


def name_of(worker: str) -> str:
    """Who stands behind the name of a worker: a person without the session, or a machine."""
    return worker.partition("@")[0]
