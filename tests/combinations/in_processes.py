"""Handlers of these tests that run in child processes, which import this module."""

from __future__ import annotations

import asyncio
import os
import time
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from aioqless import Job, job

TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


@job(klass="Hasty", executor="process", timeout=0.2)
def hasty(job: Job[Any]) -> None:
    time.sleep(600)


# long enough to start writing on a busy machine
@job(klass="Unpack", executor="process", timeout=2)
async def unpack(job: Job[Any]) -> None:
    async with job.scratch() as scratch:
        (scratch / "archive").write_bytes(b"0")
        (Path(job.data["folder"]) / "told").write_text(str(scratch))
        await asyncio.Event().wait()


@job(klass="Tell", executor="process", result_ttl=60)
def tell(job: Job[Any]) -> str:
    return f"{TENANT.get()} {os.getpid()}"


@job(klass="Crash", executor="process")
def crash(job: Job[Any]) -> None:
    os._exit(7)
