"""Suggestions for misspelled names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from aioqless.validation import plain


def suggest(name: str, known: Iterable[str]) -> str:
    """Return the most similar known name as the end of an error message; empty if none is."""
    similar = get_close_matches(name, list(known), 1)
    return f"; is it {plain(similar[0])} that you mean?" if similar else ""
