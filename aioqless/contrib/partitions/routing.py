"""Routing: which partition a job or a key belongs to, and how partitions are named.

The partition of a jid is its CRC-32 modulo the number of partitions. As in Redis Cluster, a part in
braces decides alone: `{customer-7}-a` and `{customer-7}-b` share a partition. Of a generated jid,
24 hexadecimal digits, it is the last four digits modulo the number of partitions; of the instances
of a recurring job and of called jobs, a generated jid with dashes and numbers, too. The jid of a
job that a failure put, and those of jobs that it calls, are routed as that of the failed job. Keys
of constraints are routed as jids are.
"""

from __future__ import annotations

import binascii
import itertools
import re
from collections.abc import Sequence
from functools import cache
from zlib import crc32

import msgspec

from aioqless.client.generated_jid import JID_DIGITS, generate_jid
from aioqless.redis import SLOTS
from aioqless.store import Keys

MAX_PARTITIONS = 1024

_FIRST = "0.8631"  # of any number: so a client with another one finds the record of the right one

_RANDOM = JID_DIGITS - 4  # digits of a generated jid that don't name its partition
_GENERATED_JID = re.compile(rf"[0-9a-f]{{{_RANDOM}}}([0-9a-f]{{4}})(?:-\d+)*")
_OF_FAILURE = re.compile(r"(?:(?:-handler)?-failure-\d+(?:-\d+)*)+$")
_TAGGED = re.compile(r"\{([^}]+)\}")


def check_count(partitions: int) -> int:
    """Return a number of partitions if there may be that many.

    Raises:
        TypeError: It is not an integer.
        ValueError: It is less than 1, or more than 1,024.
    """
    if isinstance(partitions, bool) or not isinstance(partitions, int):
        raise TypeError(f"partitions must be an integer (got {partitions!r})")
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise ValueError(
            f"partitions must be from 1 to {MAX_PARTITIONS:,} (got {partitions:,}): 8 for each "
            "node that there will ever be are enough"
        )
    return partitions


@cache
def name_partitions(namespace: str, partitions: int) -> tuple[str, ...]:
    """Return the namespaces of the partitions, whose hash tags spread them evenly over the slots.

    A single partition has the namespace as it is. The namespace `{billing}`, as an unpartitioned
    Cluster would need it, has the same partitions as `billing`.

    Raises:
        ValueError: The namespace has a hash tag in the middle.
    """
    name = namespace[1:-1] if re.fullmatch(r"\{[^{}]+\}", namespace) else namespace
    if "{" in name or "}" in name:
        raise ValueError(
            f"namespace {namespace!r} must have no braces: each partition gets a hash tag of its "
            "own"
        )
    if partitions == 1:
        return (namespace,)
    return tuple(f"{name}{{{_find_tag(number, partitions)}}}" for number in range(partitions))


def count_key(namespace: str) -> bytes:
    """Return the key in which a partition, or the whole, has the number of partitions."""
    return Keys(namespace)("partitions")


def partition_of(name: str, partitions: int) -> int:
    """Return the number of the partition that a jid or a key belongs to."""
    if partitions == 1:
        return 0
    if "-failure-" in name:
        name = _OF_FAILURE.sub("", name)
    if len(name) >= JID_DIGITS and (generated := _GENERATED_JID.fullmatch(name)):
        return int(generated[1], 16) % partitions
    if "{" in name and (tagged := _TAGGED.search(name)):
        name = tagged[1]
    return crc32(name.encode("utf-8", "surrogateescape")) % partitions


def common_partition(names: Sequence[str], partitions: int) -> int:
    """Return the number of the partition that jids and keys belong to.

    Raises:
        ValueError: They belong to several.
    """
    own = partition_of(names[0], partitions)
    for name in names[1:]:
        if (other := partition_of(name, partitions)) != own:
            raise ValueError(
                f"{names[0]!r} belongs to partition {own} of {partitions}, and {name!r} to "
                f"{other}: a job is in one partition with its keys and the jobs that it depends "
                "on. Leave out its jid, take client.jid_for(key), or give both the same part in "
                "braces, as in '{customer-7}-a' and '{customer-7}-b'"
            )
    return own


def keys_of(text: str | bytes | None) -> list[str]:
    """Return the keys among the constraints of a job, as scripts take them."""
    constraints = msgspec.json.decode(text) if text else {}
    unique = [constraints["unique"]] if "unique" in constraints else []
    return unique + [limit["key"] for limit in constraints.get("limits", ())]


def keys_of_data(text: str | bytes | None) -> list[str]:
    """Return the keys of a job that its data makes, as scripts take them."""
    keys = msgspec.json.decode(text) if text else {}
    return [*([keys["unique"]] if "unique" in keys else []), *keys.get("limits", {}).values()]


def generate_jid_in(partition: int, partitions: int, digits: str | None = None) -> str:
    """Return a jid of a partition: 24 hexadecimal digits, random but for the last four."""
    digits = digits or generate_jid()
    number = int(digits[_RANDOM:], 16)
    number += partition - number % partitions
    if number > 0xFFFF:
        number -= partitions
    return f"{digits[:_RANDOM]}{number:04x}"


def recurring_jid(jid: str, partitions: int) -> str:
    """Return the jid that a recurring job has in Redis: in braces, unless its partition is clear.

    So the jids of its instances, such as `{nightly}-1`, show its partition.

    Raises:
        ValueError: It has a brace of its own.
    """
    if partitions == 1 or _TAGGED.search(jid) or _GENERATED_JID.fullmatch(jid):
        return jid
    if "{" in jid or "}" in jid:
        raise ValueError(f"jid {jid!r} of a recurring job must have no single brace")
    return f"{{{jid}}}"


def _find_tag(number: int, partitions: int) -> str:
    """Return a hash tag with a slot in the middle of the range of a partition.

    Not near its ends, where the range of the next node may begin.
    """
    if number == 0:
        return _FIRST
    width = SLOTS / partitions
    slots = range(int((number + 0.25) * width), int((number + 0.75) * width))
    prefix = binascii.crc_hqx(f"{number}.".encode(), 0)
    return next(
        f"{number}.{attempt}"
        for attempt in itertools.count()
        if binascii.crc_hqx(str(attempt).encode(), prefix) % SLOTS in slots
    )
