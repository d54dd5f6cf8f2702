"""The job that draws a picture."""

from __future__ import annotations

import os
from pathlib import Path

import aioqless

from . import drawing

# Pictures are too large for Redis.
FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aioqless-pictures"
COARSENESS = (16, 8, 4, 2, 1)


@aioqless.job(timeout=600)
def draw(job: aioqless.Job, place: str, width: int) -> None:
    """Draw a picture, coarsely at first, so that something is visible early.

    A plain function runs in a thread.
    """
    total = sum(1 / each**2 for each in COARSENESS)
    done = 0.0
    for coarseness in COARSENESS:
        across, high = width // coarseness, width // coarseness * 9 // 16
        rows = []
        for row in drawing.rows(place, across, high):
            # a thread can't be interrupted, so it checks whether it should stop
            job.raise_if_stopped()
            rows.append(row)
            done += 1 / coarseness**2 / high
            # sent at most ten times a second
            job.progress(min(done / total, 1), f"{across} x {high}")
        keep(job.jid, drawing.png(across, rows))


def keep(jid: str, picture: bytes) -> None:
    """Replace the former picture atomically."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    new = FOLDER / f"{jid}.new"
    new.write_bytes(picture)
    new.replace(FOLDER / f"{jid}.png")
