"""Handlers of the tests that run in child processes, which import this module."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import subprocess
import threading
import time
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import structlog

from aioqless import Fail, Job, Next, Retry, SyncClient, bulk_job, job

TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")
UNSENT: ContextVar[Any] = ContextVar("unsent", default="nothing")


def began(job: Job[Any]) -> None:
    """Notify the test, whose folder has a file for each run."""
    file = Path(job.data["folder"]) / f"{job.jid}-began-{job.fence:03}"
    new = file.with_name(f"new-{file.name}")
    new.write_text(str(os.getpid()))
    new.rename(file)


def ended(job: Job[Any]) -> None:
    (Path(job.data["folder"]) / f"{job.jid}-ended").write_text(str(job.stopped))


@job(klass="Resize", executor="process")
def resize(job: Job[Any], path: str, width: int = 100) -> Next:
    job.data.update(pid=os.getpid(), width=width, tags=job.tags, jid=job.jid, fence=job.fence)
    return Next("billing")


@job(klass="Measure", executor="process", result_ttl=60)
def measure(job: Job[Any]) -> dict[str, int]:
    return {"pid": os.getpid()}


@job(klass="ReturnMuch", executor="process", result_ttl=60)
def return_much(job: Job[Any]) -> str:
    return "x" * int(job.data["size"])


@job(klass="Tell", executor="process")
def tell(job: Job[Any]) -> None:
    for number in range(1000):
        job.progress(number / 2000)
    job.progress(0.5, "half")
    while True:
        job.raise_if_stopped()
        time.sleep(0.01)


@job(klass="Ignore", executor="process")
def ignore(job: Job[Any]) -> None:
    began(job)
    time.sleep(600)


@job(klass="Start", executor="process")
def starts(job: Job[Any]) -> None:
    program = subprocess.Popen(["sleep", "600"])
    (Path(job.data["folder"]) / "program").write_text(str(program.pid))
    began(job)
    if job.data.get("dies"):
        os.abort()
    time.sleep(600)


@job(klass="Hasty", executor="process", timeout=0.2)
def hasty(job: Job[Any]) -> None:
    began(job)
    time.sleep(600)


def looks(job: Job[Any]) -> None:
    began(job)
    while not job.stopped:
        time.sleep(0.005)
    ended(job)
    job.raise_if_stopped()


look = job(klass="Look", executor="process")(looks)
look_in_thread = job(klass="LookInThread")(looks)
look_hastily = job(klass="LookHastily", executor="process", timeout=0.2)(looks)
look_hastily_in_thread = job(klass="LookHastilyInThread", timeout=0.2)(looks)


@job(klass="Best", executor="process")
def best(job: Job[Any]) -> None:
    began(job)
    while not job.stopped:
        time.sleep(0.005)
    job.data["page"] = 7


@job(klass="Await", executor="process")
async def awaits(job: Job[Any]) -> None:
    began(job)
    try:
        await asyncio.Event().wait()
    finally:
        ended(job)


def dies(job: Job[Any]) -> None:
    began(job)
    if "signal" in job.data:
        os.kill(os.getpid(), job.data["signal"])
        time.sleep(600)
    os._exit(job.data["code"])


die = job(klass="Die", executor="process")(dies)


@job(klass="Pid", executor="process")
def pid(job: Job[Any]) -> None:
    job.data["pid"] = os.getpid()
    job.data["thread"] = threading.current_thread() is threading.main_thread()


class Unkind(Exception):
    """Can be pickled but not unpickled."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")
        self.unsent = threading.Lock()


@job(klass="Raise", executor="process", retry_on=(ConnectionError,), backoff=lambda used: 60)
def raises(job: Job[Any], what: str) -> Any:
    class Local(Exception):
        pass

    match what:
        case "unkind":
            raise Unkind(1, 2)
        case "local":
            raise Local("of here")
        case "exit":
            raise SystemExit(3)
        case "retry":
            raise Retry("not now", delay=30, group="later")
        case "transient":
            raise ConnectionError("away")
        case "returned":
            return threading.Lock()


class Unreadable(Exception):
    """An exception whose message cannot be computed."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


@job(klass="Unreportable", executor="process")
def unreportable(job: Job[Any], what: str) -> object:
    match what:
        case "no text":
            raise Unreadable
        case "no text of the result":
            return Unpicklable()
        case "descriptors closed":
            os.closerange(3, 4096)
        case "descriptors reused":
            os.closerange(3, 4096)
            for _ in range(64):
                _kept.append(socket.socketpair())
        case "memory":
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + (48 << 20), resource.RLIM_INFINITY))
            held = []
            while True:
                held.append(bytes(1000))
        case "memory of the result":
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + (96 << 20), resource.RLIM_INFINITY))
            return bytes(80 << 20)
        case "forked" if os.fork() == 0:
            return None
    job.data["pid"] = os.getpid()
    return None


_kept: list[Any] = []


class Unpicklable:
    def __reduce__(self) -> str:
        raise Unreadable


@job(klass="Context", executor="process")
def context(job: Job[Any]) -> None:
    job.data.update(
        bound=structlog.contextvars.get_contextvars(), tenant=TENANT.get(), unsent=UNSENT.get()
    )


@bulk_job(klass="TakeRows", queue="mail", size=3, within=1, executor="process", result_ttl=60)
def take_rows(jobs: list[Job[Any]]) -> list[int | Exception]:
    for each in jobs:
        each.emit(each.data["number"])
        each.data["seen"] = len(jobs)
    pids: list[int | Exception] = [os.getpid()] * (len(jobs) - 1)
    return [*pids, Fail("the third")]


@job(klass="Length", executor="process", result_ttl=60)
def length(job: Job[Any], page: Any) -> int:
    return len(page["text"])


@job(klass="PutInOutage", executor="process")
def put_in_outage(job: Job[Any]) -> None:
    with SyncClient(job.data["url"]) as queues:
        queues.call(lambda client: client.ping())  # connects
        began(job)
        while not (Path(job.data["folder"]) / "away").exists():
            time.sleep(0.01)
        try:
            queues.put("Child", queue="children")
        except Exception:  # an application's own retry
            return
