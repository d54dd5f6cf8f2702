"""Handlers of workers that tests kill, stop and end: each effect is a line of a ledger."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import signal
from pathlib import Path

from aioqless import Job, LockLost, job

LEDGER = Path(os.environ.get("LEDGER", "/dev/null"))


def count(line: str) -> int:
    return LEDGER.read_text().split("\n").count(line)


def write(line: str) -> None:
    with LEDGER.open("a") as ledger:
        ledger.write(f"{line}\n")


@job(klass="Twenty", queue="mail", retries=100)
async def twenty(job: Job, deaths: list[int]) -> None:
    """Make twenty steps, and die between the effect of some and storing it."""

    async def effect(number: int) -> int:
        write(str(number))
        if number in deaths and count(str(number)) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    stored = [await job.step(f"step {number}", effect, number) for number in range(20)]
    write(f"end {sum(stored)}")


@job(klass="Items", queue="mail", retries=100)
async def items(job: Job) -> None:
    """Do items until there is a file that says that they are enough."""
    async with job.cursor("items", int) as cursor:
        for number in itertools.count(cursor.value or 0):
            if LEDGER.with_name("enough").exists():
                break
            write(str(number))
            await asyncio.sleep(0.002)
            cursor.advance(number + 1)
    write("end")


@job(klass="Suspended", queue="mail")
async def suspended(job: Job) -> None:
    """Have an effect; the first run waits for its lock to be lost before it is stored."""

    async def effect() -> int:
        number = 1 + count("effect 1")
        write(f"effect {number}")
        while number == 1 and not count("end 2"):
            with contextlib.suppress(asyncio.CancelledError):  # code that does not stop
                await asyncio.sleep(0.01)
        return number

    try:
        write(f"end {await job.step('effect', effect)}")
    except (LockLost, asyncio.CancelledError):  # the latter if it is canceled while it stores
        write("lost")
        raise


def count_children(path: str, seed: int) -> int:
    """Return how many jobs a node of a random tree calls."""
    return random.Random(f"{seed}:{path}").randrange(4) if path.count("/") < 3 else 0


@job(klass="Node", queue="mail", retries=100)
async def node(job: Job, path: str, seed: int) -> int:
    """Have an effect, call others of the same kind, and count them; die at some places, once."""
    chance = random.Random(f"death {seed}:{path}")

    def die(place: str) -> None:
        if chance.random() < 0.05 and not count(f"{seed} died {place} {path}"):
            write(f"{seed} died {place} {path}")
            os.kill(os.getpid(), signal.SIGKILL)

    async def effect() -> int:
        write(f"{seed} effect {path}")
        die("in")
        return 1

    one = await job.step("effect", effect)
    chance = random.Random(f"later {seed}:{path}")
    die("before")
    calls = (
        job.call(f"child {number}", node.data(path=f"{path}/{number}", seed=seed))
        for number in range(count_children(path, seed))
    )
    counts: list[int] = list(await asyncio.gather(*calls))
    die("after")
    return one + sum(counts)
