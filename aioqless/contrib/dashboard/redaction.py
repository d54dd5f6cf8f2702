"""Hides secrets in the data of jobs and in strings about them, and restores them after an edit."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from itertools import chain, repeat
from typing import Any

import msgspec

from aioqless.contrib.http import Role

REDACTED_NAMES = (
    "*password*", "*passwd*", "*secret*", "*token*", "*api_key*", "*apikey*",
    "*authorization*", "*credential*", "*private_key*",
)  # fmt: skip
HIDDEN = "•••••"
MAX_DEPTH = 200
# characters of a value that is searched for in other strings; shorter ones occur anywhere
MIN_SECRET_LENGTH = 4
MAX_SECRETS = 1000  # values of one job that are searched for in other strings
# Of one page, in characters of texts times what each costs, about 1 ns a unit. A product of sizes
# that callers choose needs a limit; one of time would let a page differ from moment to moment.
MAX_WORK = 500_000_000
WORK_PER_CHARACTER = 250  # without a value that is searched for
MAX_COMPARISONS = 100  # of a character, for one value: str.replace is linear for longer ones
MAX_INDENTATION = 4 << 20  # characters
TOO_MANY = f"(not shown: the job's data has more than {MAX_SECRETS:,} hidden values)"
TOO_LONG = "(not shown: too long to hide the job's secrets in it)"
# name=value, "name": 'value', Name: Bearer value. Possessive, so that matching takes linear time;
# the last group isn't, since a part of it would count as a match before Python 3.11.5.
_NAMED = re.compile(r"""(?<![\w-])([\w-]++)["']?+\s*+[:=]\s*+(?:(?i:bearer|basic)\s++)?""")
_VALUE = re.compile(r"""(["']?)(?:(?<=")[^"\n]*+"?+|(?<=')[^'\n]*+'?+|[^\s,;&)}\]]++)""")
_URL_PASSWORD = re.compile(r"(?P<before>://[^\s/:@]*+:)[^\s/@]++(?=@)")


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """What the dashboard does not show.

    Attributes:
        data_for: The lowest role that sees the data of jobs.
        redact: Patterns of names whose values are hidden from everybody, at any depth of job data
            and in strings about a job, such as the message of a failure.
    """

    data_for: Role = Role.OPERATE
    redact: Sequence[str] = REDACTED_NAMES


class Redaction:
    """Hides the values of names that match a pattern, in any case and at any depth.

    Attributes:
        active: Whether there is a pattern.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self.active = bool(patterns)
        self._hidden = re.compile(
            "|".join(translate(pattern.lower()) for pattern in patterns) or r"(?!)"
        )

    def is_hidden(self, name: str) -> bool:
        """Return whether the values of a name are hidden."""
        return self._hidden.fullmatch(name.lower()) is not None

    def format(self, text: str, *, indent: int = 2, stored: str | None = None) -> str:
        """Return job data as indented JSON without its secrets, each number as it is stored.

        Data that is not JSON is not shown, since nothing can be hidden in it.

        Args:
            text: The data, or another value about the job.
            indent: Number of spaces; 0 for one line.
            stored: The job's data, whose hidden values are hidden in the value, too.
        """
        try:
            value = json.loads(text)
            shown = self._hide(value, JobRedaction(self, self._secrets(text, stored)))
            if indent and _indentation(value, text, indent) > MAX_INDENTATION:
                indent = 0
            if shown == value:
                return msgspec.json.format(text, indent=indent)
            return json.dumps(shown, indent=indent or None, ensure_ascii=False)
        except (ValueError, RecursionError, msgspec.MsgspecError):
            return f"(not JSON: {len(text):,} characters)"

    def hides(self, stored: str, paths: Sequence[str]) -> bool:
        """Return whether a value of data is not shown as it is.

        Args:
            stored: The data.
            paths: Paths of values, such as `items.0.sku`.
        """
        if not self.active:
            return False
        texts = JobRedaction(self, self._secrets(stored))
        try:
            values = [_find(json.loads(stored), path.split(".")) for path in paths]
        except (ValueError, RecursionError):
            return True
        return any(texts.redact(value) != value for value in values if isinstance(value, str))

    def restore(self, edited: str, stored: str) -> str:
        """Put the hidden values back into data that a user has edited.

        Raises:
            ValueError: It is not JSON, nested too deeply, or a string was edited of which a part
                is hidden.
        """
        try:
            value = json.loads(edited)
            if HIDDEN not in edited and json.dumps(HIDDEN)[1:-1] not in edited:
                return edited
            before = json.loads(stored)
            shown = self._hide(before, JobRedaction(self, self._secrets(stored)))
            return json.dumps(_merge(value, before, shown), ensure_ascii=False)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None

    def redact(self, text: str, stored: str | None = None) -> str:
        """Hide secrets in one text about a job; see `of_job`."""
        return self.of_job(stored).redact(text)

    def of_job(self, stored: str | None) -> JobRedaction:
        """Return what hides secrets in the texts about a job on one page.

        Args:
            stored: The job's data, whose hidden values are hidden in the texts; None: unreadable.
        """
        return JobRedaction(self, self._secrets(stored))

    def hide_named(self, text: str) -> str:
        """Hide values that follow a hidden name, and passwords in URLs."""
        return _URL_PASSWORD.sub(rf"\g<before>{HIDDEN}", self._hide_named(text))

    def _hide_named(self, text: str) -> str:
        parts, at, kept = [], 0, 0
        while named := _NAMED.search(text, at):
            at = named.end()
            if self.is_hidden(named[1]) and (value := _VALUE.match(text, at)):
                parts += [text[kept:at], value[1], HIDDEN, value[1]]
                at = kept = value.end()
        return "".join([*parts, text[kept:]])

    def _secrets(self, *stored: str | None) -> list[str] | None:
        """Return the hidden values of data, the longest first; None if they are too many."""
        found: set[str] = set()
        try:
            left = [(json.loads(each), False) for each in stored if each and self.active]
        except ValueError:
            return []
        except RecursionError:
            return None
        while left:
            value, hidden = left.pop()
            if isinstance(value, dict):
                left += [(each, hidden or self.is_hidden(name)) for name, each in value.items()]
            elif isinstance(value, list):
                left += [(each, hidden) for each in value]
            elif (
                hidden
                and not isinstance(value, bool)
                and len(text := str(value)) >= MIN_SECRET_LENGTH
                and value is not None
            ):
                found.add(text)
                if len(found) > MAX_SECRETS:
                    return None
        return sorted(found, key=lambda each: (-len(each), each))

    def _hide(self, value: Any, texts: JobRedaction, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            raise RecursionError
        if isinstance(value, dict):
            return {
                name: HIDDEN if self.is_hidden(name) else self._hide(each, texts, depth + 1)
                for name, each in value.items()
            }
        if isinstance(value, list):
            return [self._hide(each, texts, depth + 1) for each in value]
        if isinstance(value, bool) or value is None:
            return value
        text = str(value)
        return value if (shown := texts.redact(text)) == text else shown


class JobRedaction:
    """Hides secrets in the texts about one job, on one page.

    Args:
        redaction: The names.
        secrets: The hidden values of the job's data; None if they are too many.
    """

    def __init__(self, redaction: Redaction, secrets: Sequence[str] | None) -> None:
        self._redaction = redaction
        self._secrets = secrets
        self._left = MAX_WORK

    def redact_value(self, name: str, value: object) -> str:
        """Hide the value of a hidden name, and secrets in that of any other."""
        return HIDDEN if self._redaction.is_hidden(name) else self.redact(str(value))

    def redact(self, text: str) -> str:
        """Hide secrets in a string; return a sentence instead if that takes too long."""
        if not self._redaction.active:
            return text
        if self._secrets is None:
            return TOO_MANY
        secrets = [each for each in self._secrets if len(each) <= len(text)]
        cost = WORK_PER_CHARACTER + sum(min(len(each), MAX_COMPARISONS) for each in secrets)
        if cost * len(text) > self._left:
            return TOO_LONG
        self._left -= cost * len(text)
        for secret in secrets:
            text = text.replace(secret, HIDDEN)
        return self._redaction.hide_named(text)


def _find(value: Any, path: Sequence[str]) -> str | None:
    """Return the text of the value at a path; None if there is none."""
    for name in path:
        if isinstance(value, list) and name.isascii() and name.isdigit():
            value = value[int(name)] if int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return None if value is None or isinstance(value, dict | list) else str(value)


def _merge(value: Any, stored: Any, shown: Any) -> Any:
    """Return an edited value with what is stored where it is still as it was shown."""
    if value == shown and type(value) is type(shown):
        return stored
    if isinstance(value, dict) and isinstance(stored, dict):
        return {
            name: _merge(each, stored[name], shown[name]) if name in stored else each
            for name, each in value.items()
        }
    if isinstance(value, list) and isinstance(stored, list):
        before = zip(stored, shown, strict=True)
        return [
            each if pair is None else _merge(each, *pair)
            for each, pair in zip(value, chain(before, repeat(None)), strict=False)
        ]
    if isinstance(value, str) and HIDDEN in value and HIDDEN in str(shown):
        raise ValueError(f"a part of {value[:80]!r} is hidden: replace it, or leave it as it was")
    return value


def _indentation(value: Any, text: str, indent: int) -> int:
    """Return at most how many characters indentation adds to JSON."""
    lines = text.count(",") + 2 * (text.count("[") + text.count("{"))
    depth, level = 0, [value] if isinstance(value, dict | list) else []
    while level:
        depth += 1
        level = [
            each
            for parent in level
            for each in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(each, dict | list)
        ]
    return lines * depth * indent
