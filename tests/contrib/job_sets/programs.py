"""Handlers of workers that a test kills: each run of a callback is a line of a ledger."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

from aioqless import Fail, Job, Retry, job

LEDGER = Path(os.environ.get("LEDGER", "/dev/null"))


@job(klass="Member", queue="sets", retries=1000)
async def member(job: Job, children: int = 0) -> None:
    """Add members, then complete, retry, fail, or kill the worker."""
    await job.set.put_many(
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


@job(klass="Callback", queue="callbacks", retries=1000)
def callback(job: Job, name: str) -> None:
    """Write a line, named by the jid, which a repeated run has too."""
    with LEDGER.open("a") as ledger:
        ledger.write(f"{name} {job.jid}\n")
