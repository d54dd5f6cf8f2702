"""Handlers of workers that a test kills: each run of a callback is a line of a ledger."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from aioqless import Job, job, on_finish
from aioqless.contrib.job_sets import set_of

LEDGER = Path(os.environ.get("LEDGER", "/dev/null"))


def die_once(place: str, job: Job) -> None:
    """Kill the worker where the job's data says, in its first run."""
    if job.data.get("place") == place and place not in LEDGER.read_text():
        with LEDGER.open("a") as ledger:
            ledger.write(f"died {place}\n")
        os.kill(os.getpid(), signal.SIGKILL)


@job(klass="Last", queue="sets", retries=1000)
async def last(job: Job, place: str) -> None:
    """Add a member that ends at once, and maybe die."""
    die_once("start", job)
    await set_of(job).put(plain.data(), jid="added", if_exists="keep")
    die_once("added", job)


@job(klass="Plain", queue="sets", retries=1000)
async def plain(job: Job) -> None: ...


@on_finish("job.completed")
def finished(job: Job, end: str, **_: object) -> None:
    """Maybe die when Redis has stored the completion."""
    if job.klass == "Last":
        die_once("stored", job)


@job(klass="Callback", queue="callbacks", retries=1000)
def callback(job: Job, name: str) -> None:
    """Write a line, named by the jid, which a repeated run has too."""
    with LEDGER.open("a") as ledger:
        ledger.write(f"{name} {job.jid}\n")
