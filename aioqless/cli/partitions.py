"""The partitions that the environment gives a namespace."""

from __future__ import annotations

import os

from aioqless.errors import AioqlessError

PARTITIONS_VARIABLE = "AIOQLESS_PARTITIONS"


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
