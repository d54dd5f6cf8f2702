"""Strings and JSON in replies, which other clients may have written."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import msgspec

Json: TypeAlias = Any


def decode_text(reply: bytes) -> str:
    """Decode a string; bytes that aren't UTF-8 survive the way back."""
    return reply.decode("utf-8", "surrogateescape")


def decode_json(reply: bytes) -> Json:
    """Decode JSON, and also what strict JSON forbids: bytes that aren't UTF-8, infinities.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        return msgspec.json.decode(reply)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json.loads(decode_text(reply), strict=False)
