"""The handlers of the soak test: one for each outcome."""

from __future__ import annotations

from typing import Any

import aioqless


@aioqless.job(klass="soak.act", result_ttl=2, retries=2)
async def act(job: aioqless.Job[Any], how: str) -> Any:
    if how == "fail":
        raise aioqless.Fail("as it was put", group="soak")
    if how == "retry" and job.remaining == job.retries:
        raise aioqless.Retry(delay=0.1)
    if how == "next" and job.queue == "soak":
        return aioqless.Next("soaked")
    job.progress(0.5, how)
    return {"how": how, "of": len(await job.results()) if how == "after" else 0}


@aioqless.job(klass="soak.thread")
def in_thread(job: aioqless.Job[Any], how: str) -> None:
    job.data["seen"] = True


@aioqless.job(klass="soak.tick", cron="*/2 * * * * *", queue="soak")
async def tick(job: aioqless.Job[Any]) -> None: ...
