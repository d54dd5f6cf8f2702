"""What of jobs' data, and of what is told of them, is hidden; and how what was hidden comes through
an edit unharmed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import translate
from typing import Any

import msgspec

HIDDEN = "•••••"
DEEPEST = 200
SHORTEST = 4  # characters of a value that is looked for in other texts: shorter ones are anywhere
# name=value, "name": 'value', Name: Bearer value. Nothing here goes back over what it has read,
# however long the text.
_NAMED = re.compile(r"""(?<![\w-])([\w-]++)["']?+\s*+[:=]\s*+(?:(?i:bearer|basic)\s++)?+""")
_VALUE = re.compile(r"""(["']?)(?:(?<=")[^"\n]*+"?+|(?<=')[^'\n]*+'?+|[^\s,;&)}\]]++)""")
_OF_ADDRESS = re.compile(r"(?P<before>://[^\s/:@]*+:)[^\s/@]++(?=@)")


class Redaction:
    """Hides the values of names that match a pattern, in any case and at any depth."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._any = bool(patterns)
        self._hidden = re.compile(
            "|".join(translate(pattern.lower()) for pattern in patterns) or r"(?!)"
        )

    def shown(self, text: str, *, indent: int = 2) -> str:
        """Data as text for people, each number as it is stored; what isn't JSON is said to be that,
        since nothing can be hidden in it."""
        try:
            value = json.loads(text)
            if not self._hides(value):
                return msgspec.json.format(text, indent=indent)
            return json.dumps(self._redacted(value), indent=indent or None, ensure_ascii=False)
        except (ValueError, RecursionError, msgspec.MsgspecError):
            return f"(not JSON: {len(text):,} characters)"

    def restored(self, edited: str, stored: str) -> str:
        """An edited text of data with what was hidden from the editor put back. Raises ValueError
        for what isn't JSON, or is nested too deeply."""
        try:
            value = json.loads(edited)
            if HIDDEN not in edited and json.dumps(HIDDEN)[1:-1] not in edited:
                return edited
            return json.dumps(self._put_back(value, json.loads(stored)), ensure_ascii=False)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None

    def told(self, text: str, stored: str | None = None) -> str:
        """A text of somebody's own, such as a failure's message or a line of its history, without
        what follows a hidden name there, without passwords of addresses, and without what is hidden
        in the job's stored data."""
        if not self._any:
            return text
        for secret in self._secrets(stored):
            text = text.replace(secret, HIDDEN)
        return _OF_ADDRESS.sub(rf"\g<before>{HIDDEN}", self._unnamed(text))

    def _unnamed(self, text: str) -> str:
        parts, at, kept = [], 0, 0
        while named := _NAMED.search(text, at):
            at = named.end()
            if self._hidden.fullmatch(named[1].lower()) and (value := _VALUE.match(text, at)):
                parts += [text[kept:at], value[1], HIDDEN, value[1]]
                at = kept = value.end()
        return "".join([*parts, text[kept:]])

    def _secrets(self, stored: str | None) -> list[str]:
        """The hidden values of data, the longest first."""
        found: set[str] = set()
        with suppress(ValueError, RecursionError):
            self._gather(json.loads(stored) if stored else None, False, found)
        return sorted(found, key=lambda each: (-len(each), each))

    def _gather(self, value: Any, hidden: bool, found: set[str]) -> None:
        if isinstance(value, dict):
            for name, each in value.items():
                self._gather(
                    each, hidden or self._hidden.fullmatch(name.lower()) is not None, found
                )
        elif isinstance(value, list):
            for each in value:
                self._gather(each, hidden, found)
        elif (
            hidden
            and not isinstance(value, bool)
            and len(text := str(value)) >= SHORTEST
            and value is not None
        ):
            found.add(text)

    def _hides(self, value: Any, depth: int = 0) -> bool:
        if depth > DEEPEST:
            raise RecursionError
        if isinstance(value, dict):
            return any(
                self._hidden.fullmatch(name.lower()) or self._hides(each, depth + 1)
                for name, each in value.items()
            )
        return isinstance(value, list) and any(self._hides(each, depth + 1) for each in value)

    def _redacted(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: HIDDEN if self._hidden.fullmatch(name.lower()) else self._redacted(each)
                for name, each in value.items()
            }
        return [self._redacted(each) for each in value] if isinstance(value, list) else value

    def _put_back(self, value: Any, stored: Any) -> Any:
        if isinstance(value, dict) and isinstance(stored, dict):
            return {
                name: stored[name]
                if each == HIDDEN and name in stored and self._hidden.fullmatch(name.lower())
                else self._put_back(each, stored.get(name))
                for name, each in value.items()
            }
        if isinstance(value, list) and isinstance(stored, list):
            return [
                self._put_back(each, stored[at] if at < len(stored) else None)
                for at, each in enumerate(value)
            ]
        return value
