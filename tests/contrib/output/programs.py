"""Handlers of workers that tests kill."""

from __future__ import annotations

import asyncio

from aioqless import Job, job

TEXT = "".join(f"word {number} " for number in range(60))


@job(klass="Speak", queue="mail", retries=100, output_ttl=60)
async def speak(job: Job) -> None:
    for token in TEXT.split(" "):
        job.emit(f"{token} ")
        await asyncio.sleep(0.01)
