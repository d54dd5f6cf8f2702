"""Types of job data."""

from __future__ import annotations

import dataclasses

import msgspec


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Box(msgspec.Struct):
    points: list[Point]
