"""What of jobs' data is shown, and to whom; and how what was hidden comes through an edit unharmed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from fnmatch import translate
from typing import Any

import msgspec

HIDDEN = "•••••"
DEEPEST = 200


class Redaction:
    """Hides the values of names that match a pattern, in any case and at any depth."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._hidden = re.compile("|".join(translate(pattern.lower()) for pattern in patterns) or r"(?!)")

    def shown(self, text: str, *, indent: int = 2) -> str:
        """Data as text for people, each number as it is stored; what isn't JSON is said to be that, since nothing can be hidden in it."""
        try:
            value = json.loads(text)
            if not self._hides(value):
                return msgspec.json.format(text, indent=indent)
            return json.dumps(self._redacted(value), indent=indent or None, ensure_ascii=False)
        except (ValueError, RecursionError, msgspec.MsgspecError):
            return f"(not JSON: {len(text):,} characters)"

    def restored(self, edited: str, stored: str) -> str:
        """An edited text of data with what was hidden from the editor put back. Raises ValueError for what isn't JSON."""
        value = json.loads(edited)
        if HIDDEN not in edited and json.dumps(HIDDEN)[1:-1] not in edited:
            return edited
        return json.dumps(self._put_back(value, json.loads(stored)), ensure_ascii=False)

    def _hides(self, value: Any, depth: int = 0) -> bool:
        if depth > DEEPEST:
            raise RecursionError
        if isinstance(value, dict):
            return any(self._hidden.fullmatch(name.lower()) or self._hides(each, depth + 1) for name, each in value.items())
        return isinstance(value, list) and any(self._hides(each, depth + 1) for each in value)

    def _redacted(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: HIDDEN if self._hidden.fullmatch(name.lower()) else self._redacted(each) for name, each in value.items()}
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
            return [self._put_back(each, stored[at] if at < len(stored) else None) for at, each in enumerate(value)]
        return value
