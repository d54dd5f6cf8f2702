"""Handlers of workers that tests kill."""

from __future__ import annotations

import asyncio

from aioqless import Job, job

TEXT = "".join(f"word {number} " for number in range(60))
HOLDS = (40, 90)  # tokens after which the first runs wait until their workers are killed


@job(klass="Speak", queue="mail", retries=100, output_ttl=600)
async def speak(job: Job) -> None:
    for number, token in enumerate(TEXT.split(" ")):
        if number in HOLDS[job.fence - 1 : job.fence]:
            await asyncio.Event().wait()
        job.emit(f"{token} ")
        await asyncio.sleep(0.01)
