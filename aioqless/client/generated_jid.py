"""Generated jids: random, and short, since Redis stores each several times."""

from __future__ import annotations

import os

from aioqless.lua import constant

JID_DIGITS = constant("JID_DIGITS")


def generate_jid() -> str:
    """Return a new jid: 24 random hexadecimal digits, 96 bits."""
    return os.urandom(JID_DIGITS // 2).hex()  # as secrets.token_hex, in half the time
