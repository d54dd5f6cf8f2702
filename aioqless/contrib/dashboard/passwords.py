"""Hashes and verifies passwords (Argon2id)."""

from __future__ import annotations

import base64

from argon2 import PasswordHasher, Type, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError

# 32 MiB and about 60 ms for each guess
_HASHER = PasswordHasher(time_cost=3, memory_cost=32 * 1024, parallelism=1)
MIN_LENGTH = 8
# limits of hashes that are read from a file
MAX_MEMORY = 256 * 1024  # KiB
MAX_ROUNDS = 20
MAX_PARALLELISM = 16


def make_hash(password: str) -> str:
    """Return the hash of a password; raise ValueError for one that is too short."""
    if len(password) < MIN_LENGTH:
        raise ValueError(f"a password must have {MIN_LENGTH} characters at least")
    return _HASHER.hash(_bytes(password))


def verify(password: str, stored: str) -> bool:
    """Return whether a password matches a hash, in constant time."""
    try:
        return _HASHER.verify(stored, _bytes(password))
    except VerificationError:
        return False


def validate(stored: str) -> None:
    """Raise ValueError for a string that is no hash of ours, or one that is too expensive."""
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


def _bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")
