"""The job: it asks the model, and emits each piece of the answer."""

from __future__ import annotations

import os

import httpx

import aioqless


@aioqless.job(queue="answers", output_ttl=3600, retry_on=httpx.HTTPError)
async def answer(job: aioqless.Job, question: str) -> None:
    """Stream the answer to a question."""
    url = os.environ["MODEL_URL"]
    async with (
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as model,
        model.stream("GET", "/answer", params={"question": question}) as response,
    ):
        response.raise_for_status()
        async for piece in response.aiter_text():
            job.emit(piece)
