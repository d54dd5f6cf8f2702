"""Handlers of the proof: most do nothing, some advance to another queue, are retried, or fail."""

from __future__ import annotations

import aioqless


@aioqless.job
async def quick(job: aioqless.Job) -> None:
    pass


@aioqless.job
async def staged(job: aioqless.Job) -> aioqless.Next | None:
    return aioqless.Next("second") if job.queue == "work" else None


@aioqless.job
async def shaky(job: aioqless.Job) -> None:
    if job.remaining == job.retries:
        raise aioqless.Retry("once more", delay=0, group="shaky")


@aioqless.job
async def bad(job: aioqless.Job) -> None:
    raise aioqless.Fail("it is what it is", group="bad")
