"""The job that draws a picture."""

from __future__ import annotations

import os
from pathlib import Path

import aioqless

from . import drawing

FOLDER = (
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aioqless-pictures"
)  # they are too large for Redis
COARSENESS = (16, 8, 4, 2, 1)


@aioqless.job(timeout=600)
def draw(job: aioqless.Job, place: str, width: int) -> None:
    """Draw a picture, coarsely at first, so that there soon is something to see. A plain function:
    it runs in a thread."""
    total = sum(1 / each**2 for each in COARSENESS)
    done = 0.0
    for coarseness in COARSENESS:
        across, high = width // coarseness, width // coarseness * 9 // 16
        rows = []
        for row in drawing.rows(place, across, high):
            # a thread can't be interrupted: here we look whether the server stops, or somebody
            # cancelled the job
            job.raise_if_stopped()
            rows.append(row)
            done += 1 / coarseness**2 / high
            job.progress(
                min(done / total, 1), f"{across} x {high}"
            )  # seldom sent: at most ten times a second
        keep(job.jid, drawing.png(across, rows))


def keep(jid: str, picture: bytes) -> None:
    """Store a picture in the place of the one before. Nobody sees half of it, and a job that runs
    twice does no harm."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    new = FOLDER / f"{jid}.new"
    new.write_bytes(picture)
    new.replace(FOLDER / f"{jid}.png")
