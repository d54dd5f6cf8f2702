"""A person, in one of their sessions."""

from __future__ import annotations

from dataclasses import dataclass

from aioqless import validation

MAX_LENGTH = 64


@dataclass(frozen=True)
class Person:
    """A person with a name that others know, and a session: a browser tab, a program.

    A reservation belongs to the session that made it. A job that was handed over to a person goes
    to the first session of theirs that reserves.

    Raises:
        ValueError: A name of more than 64 characters or with an `@`, or an invalid session.
    """

    name: str
    session: str = ""

    def __post_init__(self) -> None:
        validation.check_name("a person's name", self.name)
        if "@" in self.name or len(self.name) > MAX_LENGTH or self.name != self.name.strip():
            raise ValueError(
                f"a person's name {self.name[:70]!r} must have at most {MAX_LENGTH} characters, no "
                "'@', and no space at its ends"
            )
        if self.session:
            validation.check_name("session", self.session)

    @property
    def worker(self) -> str:
        """The worker name that holds the person's locks: `name`, or `name@session`."""
        return f"{self.name}@{self.session}" if self.session else self.name

    def request_id(self, request: str | None) -> str | None:
        """Return the request id of a repeatable call, from this session's own name for it."""
        return None if request is None else f"{self.worker} {request}:1"

    @classmethod
    def of(cls, person: Person | str) -> Person:
        """Return a person, also for a name alone."""
        return person if isinstance(person, Person) else cls(person)


def name_of(worker: str) -> str:
    """Return the name of a worker without the session of a person."""
    return worker.partition("@")[0]
