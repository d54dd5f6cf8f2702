"""Handlers of workers that a test kills: each run of a callback is a line of a ledger."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

from aioqless import Fail, Job, Retry, job, on_finish
from aioqless.contrib.job_sets import set_of

LEDGER = Path(os.environ.get("LEDGER", "/dev/null"))


@job(klass="Member", queue="sets", retries=1000)
async def member(job: Job, children: int = 0) -> None:
    """Add members, then complete, retry, fail, or kill the worker."""
    await set_of(job).put_many(
        member.data().with_options(jid=f"{job.jid}.{number}", if_exists="keep")
        for number in range(children)
    )
    chance = random.random()
    if chance < 0.01:
        os.kill(os.getpid(), signal.SIGKILL)
    if chance < 0.1:
        raise Retry("again", delay=0)
    if chance < 0.2:
        raise Fail("enough", group="enough")


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
