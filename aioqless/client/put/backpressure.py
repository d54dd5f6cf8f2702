"""Waiting for room where a queue, or Redis, has none."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any, Literal

from aioqless import validation
from aioqless.client.put.put_batcher import put_batch
from aioqless.errors import QueueFull
from aioqless.store import Store

FIRST = 0.02  # seconds between two tries; they double
LONGEST = 1.0


class Patience:
    """How long a caller waits for room. Raises ValueError and TypeError for what is no number of
    seconds."""

    def __init__(self, wait: float) -> None:
        self._until = time.monotonic() + validation.check_number("wait", wait, least=0)
        self._pause = FIRST

    async def lasts(self) -> bool:
        """Pause before the next try; False, at once, when there is no time for one."""
        left = self._until - time.monotonic()
        if left <= 0:
            return False
        await asyncio.sleep(min(left, self._pause * random.uniform(0.8, 1.2)))
        self._pause = min(self._pause * 2, LONGEST)
        return True


async def put_patiently(
    store: Store,
    queue: str,
    batch: list[dict[str, Any]],
    patience: Patience,
    *,
    existing: Literal["keep"] | None = None,
) -> list[Any]:
    """Put jobs; returns the jid or the refusal of each. Those for which there is no room are put
    again for as long as patience lasts. Raises QueueFull when Redis has no memory for any. `keep`:
    one that exists stays as it is, and its answer is empty."""
    answers = await _put(store, queue, batch, existing)
    while (
        left := [index for index, answer in enumerate(answers) if isinstance(answer, QueueFull)]
    ) and await patience.lasts():
        for index, answer in zip(
            left,
            await _put(store, queue, [batch[index] for index in left], existing),
            strict=True,
        ):
            answers[index] = answer
    if len(left) == len(batch) and answers[0].code == "OOM":
        raise answers[0]
    return answers


async def _put(
    store: Store, queue: str, batch: list[dict[str, Any]], existing: Literal["keep"] | None
) -> list[Any]:
    try:
        return await put_batch(store, queue, batch, existing=existing)
    except QueueFull as full:  # of memory, so for all of them
        return [full] * len(batch)
