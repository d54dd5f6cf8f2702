"""Jobs put rightly, and wrongly on the lines that say so: what type checkers must find, and nothing
else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from aioqless import Client, Failure, Inject, Job, NewJob, chain, group, in_queue, job


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


@dataclass
class Thumb:
    path: str


@job(result_ttl=timedelta(hours=1), queue="images", priority=-1, tags=["thumb"])
async def shrink(job: Job[Any], path: str) -> Thumb:
    return Thumb(path)


@job(result_ttl=60, retry_on=OSError)
def shrink_blocking(job: Job[Any], path: str) -> Thumb:
    return Thumb(path)


@job(priority="high")  # wrong: not a number
async def important(job: Job[Any]) -> None: ...


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
    resize.data(path=7)  # wrong: not a string
    resize_blocking.data("a.png", 7)  # wrong: only by name
    resize_whole.data({"path": "a.png"})  # wrong: not a Resize
    await mail.put(resize.data(path="a.png"), dealy=60)  # wrong: no such option
    await mail.put(resize.data(path="a.png"), delay="60")  # wrong: not a number
    NewJob(resize, {"path": "a.png"}, prority=1)  # wrong: no such option


async def results(client: Client) -> None:
    jid = await client.put(shrink.data(path="a.png"), queue="images", timeout=5)  # wrong: no option
    thumb: Thumb = await (await client.put(shrink.data(path="a.png"), delay=60)).result()
    thumb = await (await shrink.put(path="a.png")).result(timeout=5)
    thumb = await (await client.queue("images").put(shrink, {"path": "a.png"})).result()
    thumb = await (await shrink_blocking.put("a.png")).result()
    thumbs: list[Thumb] = [
        await jid.result() for jid in await client.put_many(map(shrink.data, ["a.png", "b.png"]))
    ]
    text: str = await (await shrink.put(path="a.png")).result()  # wrong: a Thumb
    thumb = await client.jobs.result("a jid", shrink)
    text = await client.jobs.result("a jid", shrink)  # wrong: a Thumb
    text = await client.jobs.result("a jid")
    anything: str = await (await client.put("elsewhere.resize", {"path": "a.png"})).result()
    print(jid, thumb, thumbs, text, anything, await client.jobs.get(await sweep.put()))
    await shrink.put(pth="a.png")  # wrong: no such parameter
    await shrink.put(path="a.png", delay=60)  # wrong: options go with client.put
    await client.put(resize.data(path="a.png"), at=datetime.now(UTC), expires_in=timedelta(hours=1))
    await client.put(resize.data(path="a.png"), delay=datetime.now(UTC))  # wrong: not a duration
    await client.put(resize.data(path="a.png"), at=60)  # wrong: not a datetime


@job
async def gather(job: Job[Any], thumb: Thumb, thumbs: Sequence[Thumb | Failure] = ()) -> None: ...


async def results_as_arguments(client: Client) -> None:
    thumb = in_queue("images", shrink.data(path="a.png"))
    thumbs = group(thumb, shrink.data(path="b.png"), shrink.data(path="c.png").with_options())
    await client.put_flow(
        chain(thumbs, gather.data(thumb=thumb.result, thumbs=thumbs.result), sweep.data())
    )
    resize.data(path=thumb.result)  # wrong: a Thumb
    gather.data(thumb=thumbs.result)  # wrong: a list
    gather.data(thumb=thumb.job.result, thumbs=thumb.result)  # wrong: no list
    group(chain(thumb), sweep.data(), group(thumbs))


async def recur(client: Client) -> None:
    mail = client.queue("mail")
    await mail.recur(
        resize.data(path="a.png"), cron="0 9 * * mon-fri", timezone="Europe/Paris", jid="nightly"
    )
    await mail.recur(resize, {"path": "a.png"}, every=3600, backlog=3, jid="r")
    await mail.recur(resize.data(path="a.png"), evry=3600, jid="r")  # wrong: no such option
    await mail.recur(resize.data(path="a.png"), every="1h", jid="r")  # wrong: not a number


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


class Pool: ...


@job
async def charge(job: Job[Any], invoice: int, pool: Pool = Inject) -> str:
    return str(invoice)


async def call(its: Job, typed: Job[Resize]) -> None:
    text: str = await charge(its, 7)
    text = await charge(its, invoice=7, pool=Pool())
    await resize(its, "a.png", width=7)
    await resize_whole(typed)
    await sweep(its)
    sweep_blocking(its)
    thumb: Thumb = shrink_blocking(its, "a.png")
    thumb = await shrink(its, "a.png")
    print(text, thumb)
    await resize(1, 2, 3)  # wrong: no job, no string
    await resize(its)  # wrong: no path
    await resize(its, "a.png", hight=7)  # wrong: no such parameter
    await resize_whole(typed, Resize("a.png"))  # wrong: the job alone
    text = await shrink(its, "a.png")  # wrong: a Thumb
    await shrink_blocking(its, "a.png")  # wrong: no coroutine
    await charge.put(7)
    await charge.put(invoice="7")  # wrong: not a number
