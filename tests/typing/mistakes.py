"""Jobs put rightly, and wrongly on the lines that say so: what type checkers must find, and nothing
else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aioqless import Client, Job, NewJob, chain, job


@dataclass
class Resize:
    path: str
    width: int = 100


@job
async def resize(job: Job[Any], path: str, width: int = 100) -> None: ...


@job(timeout=5, retries=3)
def resize_blocking(job: Job[Any], path: str, *, width: int = 100) -> None: ...


@job
async def resize_whole(job: Job[Resize]) -> None:
    job.data.width += 1
    job.data.height += 1  # wrong: no such field


@job
async def sweep(job: Job) -> None: ...


@job(klass="Sweep", retries=0)
def sweep_blocking(job: Job[Any]) -> None: ...


async def put(client: Client) -> None:
    mail = client.queue("mail")
    await mail.put(resize.data(path="a.png", width=7), delay=60, tags=["now"])
    await mail.put(resize.data("a.png"))
    await mail.put(resize_blocking.data("a.png", width=7))
    await mail.put(resize_whole.data(Resize("a.png")), jid="one")
    await mail.put_flow(chain(sweep.data(), sweep_blocking.data(), sweep.data({"deep": True})))
    await mail.put(resize, {"path": "a.png"})
    await mail.put("elsewhere.resize", {"path": "a.png"})
    await mail.put_many(resize.data(path=path) for path in ("a.png", "b.png"))

    resize.data(pth="a.png")  # wrong: no such parameter
    resize.data(width=7)  # wrong: no path
    resize.data(path=7)  # wrong: not a text
    resize_blocking.data("a.png", 7)  # wrong: only by name
    resize_whole.data({"path": "a.png"})  # wrong: not a Resize
    await mail.put(resize.data(path="a.png"), dealy=60)  # wrong: no such option
    await mail.put(resize.data(path="a.png"), delay="60")  # wrong: not a number
    NewJob(resize, {"path": "a.png"}, prority=1)  # wrong: no such option


async def recur(client: Client) -> None:
    mail = client.queue("mail")
    await mail.recur(
        resize.data(path="a.png"), cron="0 9 * * mon-fri", timezone="Europe/Paris", jid="nightly"
    )
    await mail.recur(resize, {"path": "a.png"}, every=3600, backlog=3)
    await mail.recur(resize.data(path="a.png"), evry=3600)  # wrong: no such option
    await mail.recur(resize.data(path="a.png"), every="1h")  # wrong: not a number


@job(cron="0 9 * * *", timezone="Europe/Paris", data={"path": "a.png"}, queue="mail")
async def nightly(job: Job[Any], path: str) -> None: ...


@job(every="1h")  # wrong: not a number
async def hourly(job: Job[Any]) -> None: ...


@job(timeuot=5)  # wrong: no such option
async def misspelt(job: Job[Any]) -> None: ...


@job  # wrong: takes no job
async def jobless() -> None: ...


@job(timeout=5)  # wrong: takes no job
async def jobless_with_options() -> None: ...
