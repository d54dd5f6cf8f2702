"""The partitions that the environment gives a namespace."""

from __future__ import annotations

import os

from aioqless.errors import AioqlessError
from aioqless.redis.cluster import uses_shard_channels

PARTITIONS_VARIABLE = "AIOQLESS_PARTITIONS"


def count_partitions(namespace: str, given: int | None) -> int | None:
    """Return how many partitions a command works on; None for a namespace without, or for one."""
    return None if uses_shard_channels(namespace) else given


def check_one_partition(namespace: str) -> None:
    """Refuse to show a whole namespace where only one partition can be shown.

    Raises:
        AioqlessError: The environment says that it has partitions, and none of them is named.
    """
    if os.environ.get(PARTITIONS_VARIABLE) and "{" not in namespace:
        raise AioqlessError(
            f"this works on one partition at a time: name one by --namespace, such as "
            f"'{namespace}{{...}}'; `aioqless partitions --each` lists them"
        )
