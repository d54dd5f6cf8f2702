"""Draws the Mandelbrot set in plain Python, without queues."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator

PLACES = {  # center and width
    "Seahorses": (-0.7453 + 0.1127j, 0.0065),
    "Elephants": (0.2925 + 0.0149j, 0.022),
    "Spirals": (-0.761574 - 0.0847596j, 0.0018),
    "Lightning": (-1.315180982097868 + 0.073481649996795j, 0.004),
    "The whole": (-0.6 + 0j, 3.4),
}
MAX_STEPS = 300  # after which a point counts as inside
INSIDE = bytes((8, 8, 24))
SHADES = 1024
PHASES = (0.56, 0.66, 0.80)  # of red, green, blue
PALETTE = [
    bytes(round(127.5 + 127.5 * math.cos(math.tau * (shade / SHADES + phase))) for phase in PHASES)
    for shade in range(SHADES)
]


def rows(place: str, width: int, height: int) -> Iterator[bytes]:
    """Yield the rows of the picture from the top, three bytes per pixel."""
    center, width_of_place = PLACES[place]
    scale = width_of_place / width
    for y in range(height):
        row = center + complex(-width_of_place / 2, (height / 2 - y) * scale)
        yield b"".join([_color(row + x * scale) for x in range(width)])


def _color(c: complex) -> bytes:
    z = c
    for steps in range(MAX_STEPS):
        if abs(z) > 8:
            smooth = steps - math.log2(math.log2(abs(z)))
            return PALETTE[int(math.sqrt(max(smooth, 0)) * SHADES / 7) % SHADES]
        z = z * z + c
    return INSIDE


def png(width: int, rows: list[bytes]) -> bytes:
    """Return a PNG file of these rows."""
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    header = struct.pack(">IIBBBBB", width, len(rows), 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", pixels)
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )
