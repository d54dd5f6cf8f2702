"""Passwords: their hashes, and whether one is right. scrypt, as the standard library has it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets

COST, BLOCK, LANES = 2**15, 8, 1  # 32 MiB and some 60 ms for each guess
SHAPE = re.compile(r"scrypt\$(\d{1,8})\$(\d{1,3})\$(\d{1,3})\$([\w+/=-]+)\$([\w+/=-]+)")


def hashed(password: str) -> str:
    """The hash of a password, to be kept instead of it: `scrypt$n$r$p$salt$hash`. Raises ValueError for one of less than 8 characters."""
    if len(password) < 8:
        raise ValueError("a password must have 8 characters at least")
    salt = secrets.token_bytes(16)
    key = _key(password, salt, COST, BLOCK, LANES)
    return f"scrypt${COST}${BLOCK}${LANES}${base64.b64encode(salt).decode()}${base64.b64encode(key).decode()}"


def is_right(password: str, kept: str) -> bool:
    """Whether a password is the one of a hash. It takes as long whether it is or not."""
    n, r, p, salt, key = _read(kept)
    return hmac.compare_digest(_key(password, salt, n, r, p), key)


def checked(kept: str) -> str:
    """A hash as it is, or ValueError for what is none of ours."""
    _read(kept)
    return kept


def _read(kept: str) -> tuple[int, int, int, bytes, bytes]:
    found = SHAPE.fullmatch(kept)
    try:
        n, r, p = (int(found[each]) for each in (1, 2, 3)) if found else (0, 0, 0)
        salt, key = (base64.b64decode(found[each], validate=True) for each in (4, 5)) if found else (b"", b"")
    except binascii.Error:
        found = None
    if not found or n < 2 or n & (n - 1) or 128 * n * r > 2**28 or not 1 <= p <= 16 or not r or not salt or len(key) != 32:
        raise ValueError("a password's hash must be as `aioqless web-user` prints it: scrypt$n$r$p$salt$hash")
    return n, r, p, salt, key


def _key(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password.encode("utf-8", "surrogatepass"), salt=salt, n=n, r=r, p=p, maxmem=2**29, dklen=32)
