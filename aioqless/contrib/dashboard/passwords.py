"""Hashes and verifies passwords (Argon2id); hashes of earlier versions (scrypt) still verify."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re

from argon2 import PasswordHasher, Type, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError

# 32 MiB and about 60 ms for each guess
_HASHER = PasswordHasher(time_cost=3, memory_cost=32 * 1024, parallelism=1)
MIN_LENGTH = 8
# limits of hashes that are read from a file
MAX_MEMORY = 256 * 1024  # KiB
MAX_ROUNDS = 20
MAX_PARALLELISM = 16
SCRYPT = re.compile(r"scrypt\$(\d{1,8})\$(\d{1,3})\$(\d{1,3})\$([\w+/=-]+)\$([\w+/=-]+)")


def make_hash(password: str) -> str:
    """Return the hash of a password; raise ValueError for one that is too short."""
    if len(password) < MIN_LENGTH:
        raise ValueError(f"a password must have {MIN_LENGTH} characters at least")
    return _HASHER.hash(_bytes(password))


def verify(password: str, stored: str) -> bool:
    """Return whether a password matches a hash, in constant time."""
    if stored.startswith("scrypt$"):
        n, r, p, salt, key = _parse_scrypt(stored)
        return hmac.compare_digest(
            hashlib.scrypt(_bytes(password), salt=salt, n=n, r=r, p=p, maxmem=2**29, dklen=32), key
        )
    try:
        return _HASHER.verify(stored, _bytes(password))
    except VerificationError:
        return False


def validate(stored: str) -> None:
    """Raise ValueError for a string that is no hash of ours, or one that is too expensive."""
    if stored.startswith("scrypt$"):
        _parse_scrypt(stored)
        return
    try:
        costs = extract_parameters(stored)
        for each in stored.split("$")[-2:]:
            base64.b64decode(each + "=" * (-len(each) % 4), validate=True)
    except (InvalidHashError, ValueError):
        raise _invalid() from None
    if (
        costs.type is not Type.ID
        or costs.memory_cost > MAX_MEMORY
        or costs.time_cost > MAX_ROUNDS
        or costs.parallelism > MAX_PARALLELISM
    ):
        raise _invalid()


def _invalid() -> ValueError:
    return ValueError(
        "a password's hash must be as `aioqless web-user` prints it: $argon2id$v=19$m=...$salt$hash"
    )


def _parse_scrypt(stored: str) -> tuple[int, int, int, bytes, bytes]:
    found = SCRYPT.fullmatch(stored)
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
        or not 1 <= p <= MAX_PARALLELISM
        or not r
        or not salt
        or len(key) != 32
    ):
        raise _invalid()
    return n, r, p, salt, key


def _bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")
