"""Passwords: their hashes (Argon2id), and whether one is right. Hashes of earlier versions (scrypt)
still verify."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re

from argon2 import PasswordHasher, Type, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError

_HASHER = PasswordHasher(
    time_cost=3, memory_cost=32 * 1024, parallelism=1
)  # 32 MiB and some 60 ms for each guess
MOST_MEMORY, MOST_ROUNDS = 256 * 1024, 20  # KiB; a file's hashes may not cost more
SHAPE = re.compile(r"scrypt\$(\d{1,8})\$(\d{1,3})\$(\d{1,3})\$([\w+/=-]+)\$([\w+/=-]+)")


def hashed(password: str) -> str:
    """Return the hash of a password, to be stored instead of it. Raises ValueError for one of less
    than 8 characters."""
    if len(password) < 8:
        raise ValueError("a password must have 8 characters at least")
    return _HASHER.hash(_bytes(password))


def is_right(password: str, kept: str) -> bool:
    """Whether a password is the one of a hash. It takes as long whether it is or not."""
    if kept.startswith("scrypt$"):
        n, r, p, salt, key = _scrypt(kept)
        return hmac.compare_digest(
            hashlib.scrypt(_bytes(password), salt=salt, n=n, r=r, p=p, maxmem=2**29, dklen=32), key
        )
    try:
        return _HASHER.verify(kept, _bytes(password))
    except VerificationError:
        return False


def checked(kept: str) -> str:
    """Return a hash as it is. Raises ValueError for what is none of ours, or would cost too
    much."""
    if kept.startswith("scrypt$"):
        _scrypt(kept)
        return kept
    try:
        costs = extract_parameters(kept)
        for each in kept.split("$")[-2:]:
            base64.b64decode(each + "=" * (-len(each) % 4), validate=True)
    except (InvalidHashError, ValueError):
        raise _refusal() from None
    if (
        costs.type is not Type.ID
        or costs.memory_cost > MOST_MEMORY
        or costs.time_cost > MOST_ROUNDS
        or costs.parallelism > 16
    ):
        raise _refusal()
    return kept


def _refusal() -> ValueError:
    return ValueError(
        "a password's hash must be as `aioqless web-user` prints it: $argon2id$v=19$m=...$salt$hash"
    )


def _scrypt(kept: str) -> tuple[int, int, int, bytes, bytes]:
    found = SHAPE.fullmatch(kept)
    try:
        n, r, p = (int(found[each]) for each in (1, 2, 3)) if found else (0, 0, 0)
        salt, key = (
            (base64.b64decode(found[each], validate=True) for each in (4, 5))
            if found
            else (b"", b"")
        )
    except binascii.Error:
        found = None
    if (
        not found
        or n < 2
        or n & (n - 1)
        or 128 * n * r > 2**28
        or not 1 <= p <= 16
        or not r
        or not salt
        or len(key) != 32
    ):
        raise _refusal()
    return n, r, p, salt, key


def _bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")
