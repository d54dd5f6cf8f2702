"""MissingNode: what partial reads of a namespace on several nodes lack."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MissingNode:
    """A node from which partial reads got no answer.

    Attributes:
        node: Its address; None if only the slots of these partitions are unavailable.
        partitions: Numbers of the partitions whose jobs the results lack.
        error: The error.
    """

    node: str | None
    partitions: tuple[int, ...]
    error: str

    def __str__(self) -> str:
        noun = "Partitions" if len(self.partitions) > 1 else "Partition"
        return f"{noun} {', '.join(map(str, self.partitions))} can't be read: {self.error}"
