"""Merging the replies of all partitions to one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Merge: TypeAlias = Callable[[Sequence[Any]], Any]


def _nothing(_: Sequence[None]) -> None:
    return None


MERGES: dict[str, Merge] = {
    "length": sum,
    "pause": _nothing,
    "unpause": _nothing,
    "forget": _nothing,
    "config_set": _nothing,
    "config_unset": _nothing,
}
