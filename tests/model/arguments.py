"""The arguments of commands, and the refusal of a command."""

import json

REFUSALS = ("BADARG", "NOJOB", "BADSTATE", "LOCKLOST", "HELD", "REPEATED")


class Refusal(Exception):
    """A command was refused; nothing changed."""

    def __init__(self, code: str, why: str = "") -> None:
        super().__init__(f"{code} {why}".strip())
        self.code = code


def refuse_unless(good: bool, argument: str, value: object) -> None:
    if not good:
        raise Refusal("BADARG", f"{argument} = {value!r}")


def page(offset: int, count: int | None, usual: int = 25) -> slice:
    """Return the requested part of a listing."""
    return slice(offset, offset + (usual if count is None else count))


def negated(priority: float) -> float:
    """Return a priority as Redis stores it: the caller's, negated."""
    return -priority if priority else 0.0


def json_strings(value: str | None) -> list[str]:
    """Return a list without duplicates; the first position counts."""
    return list(dict.fromkeys(json.loads(value or "[]")))
