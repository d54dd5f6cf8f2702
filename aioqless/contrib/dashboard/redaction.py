"""Hides secrets in the data of jobs and in strings about them, and restores them after an edit."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import translate
from typing import Any

import msgspec

HIDDEN = "•••••"
MAX_DEPTH = 200
# characters of a value that is searched for in other strings; shorter ones occur anywhere
MIN_SECRET_LENGTH = 4
# name=value, "name": 'value', Name: Bearer value. Possessive, so that matching takes linear time.
_NAMED = re.compile(r"""(?<![\w-])([\w-]++)["']?+\s*+[:=]\s*+(?:(?i:bearer|basic)\s++)?+""")
_VALUE = re.compile(r"""(["']?)(?:(?<=")[^"\n]*+"?+|(?<=')[^'\n]*+'?+|[^\s,;&)}\]]++)""")
_URL_PASSWORD = re.compile(r"(?P<before>://[^\s/:@]*+:)[^\s/@]++(?=@)")


class Redaction:
    """Hides the values of names that match a pattern, in any case and at any depth."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._active = bool(patterns)
        self._hidden = re.compile(
            "|".join(translate(pattern.lower()) for pattern in patterns) or r"(?!)"
        )

    def format(self, text: str, *, indent: int = 2) -> str:
        """Return job data as indented JSON without its secrets, each number as it is stored.

        Data that is not JSON is not shown, since nothing can be hidden in it.
        """
        try:
            value = json.loads(text)
            if not self._hides(value):
                return msgspec.json.format(text, indent=indent)
            return json.dumps(self._hide(value), indent=indent or None, ensure_ascii=False)
        except (ValueError, RecursionError, msgspec.MsgspecError):
            return f"(not JSON: {len(text):,} characters)"

    def restore(self, edited: str, stored: str) -> str:
        """Put the hidden values back into data that a user has edited.

        Raises:
            ValueError: It is not JSON, or nested too deeply.
        """
        try:
            value = json.loads(edited)
            if HIDDEN not in edited and json.dumps(HIDDEN)[1:-1] not in edited:
                return edited
            return json.dumps(self._merge(value, json.loads(stored)), ensure_ascii=False)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None

    def redact(self, text: str, stored: str | None = None) -> str:
        """Hide secrets in a free text, such as the message of a failure.

        Hides values that follow a hidden name, passwords in URLs, and the hidden values of the
        job's stored data.
        """
        if not self._active:
            return text
        for secret in self._secrets(stored):
            text = text.replace(secret, HIDDEN)
        return _URL_PASSWORD.sub(rf"\g<before>{HIDDEN}", self._hide_named(text))

    def _hide_named(self, text: str) -> str:
        parts, at, kept = [], 0, 0
        while named := _NAMED.search(text, at):
            at = named.end()
            if self._hidden.fullmatch(named[1].lower()) and (value := _VALUE.match(text, at)):
                parts += [text[kept:at], value[1], HIDDEN, value[1]]
                at = kept = value.end()
        return "".join([*parts, text[kept:]])

    def _secrets(self, stored: str | None) -> list[str]:
        """Return the hidden values of data, the longest first."""
        found: set[str] = set()
        with suppress(ValueError, RecursionError):
            self._collect(json.loads(stored) if stored else None, False, found)
        return sorted(found, key=lambda each: (-len(each), each))

    def _collect(self, value: Any, hidden: bool, found: set[str]) -> None:
        if isinstance(value, dict):
            for name, each in value.items():
                self._collect(
                    each, hidden or self._hidden.fullmatch(name.lower()) is not None, found
                )
        elif isinstance(value, list):
            for each in value:
                self._collect(each, hidden, found)
        elif (
            hidden
            and not isinstance(value, bool)
            and len(text := str(value)) >= MIN_SECRET_LENGTH
            and value is not None
        ):
            found.add(text)

    def _hides(self, value: Any, depth: int = 0) -> bool:
        if depth > MAX_DEPTH:
            raise RecursionError
        if isinstance(value, dict):
            return any(
                self._hidden.fullmatch(name.lower()) or self._hides(each, depth + 1)
                for name, each in value.items()
            )
        return isinstance(value, list) and any(self._hides(each, depth + 1) for each in value)

    def _hide(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: HIDDEN if self._hidden.fullmatch(name.lower()) else self._hide(each)
                for name, each in value.items()
            }
        return [self._hide(each) for each in value] if isinstance(value, list) else value

    def _merge(self, value: Any, stored: Any) -> Any:
        if isinstance(value, dict) and isinstance(stored, dict):
            return {
                name: stored[name]
                if each == HIDDEN and name in stored and self._hidden.fullmatch(name.lower())
                else self._merge(each, stored.get(name))
                for name, each in value.items()
            }
        if isinstance(value, list) and isinstance(stored, list):
            return [
                self._merge(each, stored[at] if at < len(stored) else None)
                for at, each in enumerate(value)
            ]
        return value
