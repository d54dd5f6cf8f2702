"""Texts that have broken something somewhere."""

from __future__ import annotations

import json
import random

TEXTS: list[bytes] = [
    b"", b" ", b"\x00", b"a\x00b", b"\n", b"\r\n", b"\xff\xfe", b"\xed\xa0\x80", "Grüße".encode(),
    "\u202e\u2028".encode(), b"{",
    b"}", b"{}", b"[]", b"[[", b"null", b"false", b"true", b"0", b"-0", b"-1", b"1e308", b"1e309",
    b"-1e309", b"NaN", b"nan",
    b"inf", b"0x10", b"1.5", b"9007199254740993", b"123456789012345678901234567890", b"{ql}",
    b"ql:q:mail", b"ql:x:fence",
    b"a-history", b"a-dependents", b"*", b"?[a-z]", b"../../etc/passwd",
    b"<script>alert(1)</script>", b"'; DROP TABLE jobs; --",
    b"%s%n%d", b"${jndi:x}", b"__import__('os')", b"os.system", b"request", b"priority", b"tags",
    b"fence", b"all", b"on", b"off",
    b"x" * 600, b"\\", b'"', b"'", b"\x1b[31m", b"mail", b"a", b"worker",
    json.dumps({"a": [None, {"b": "\ud800"}]}).encode(),
    b'["a","b"]', b'{"group":7}', b'[{"a":' + b"[" * 50 + b"]" * 50 + b"}]",
    b"[" * 1200 + b"]" * 1200,
    b'{"unique":{},"limit":"x"}', b'"' + b"\\u0000" * 20 + b'"', b'{"a":1,"a":2}', b"1 2",
    b"[1e999]",
]  # fmt: skip


def text(chance: random.Random) -> bytes:
    """One of them, or two as one, or noise."""
    match chance.random():
        case low if low < 0.8:
            return chance.choice(TEXTS)
        case low if low < 0.9:
            return chance.choice(TEXTS) + chance.choice(TEXTS)
        case _:
            return chance.randbytes(chance.randrange(40))
