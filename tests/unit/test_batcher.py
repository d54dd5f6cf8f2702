"""Batcher: which items are sent together, and which caller gets which reply."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from aioqless.redis.batcher import Batcher, BatcherClosed


class Sent:
    """Records batches; replies when the test says so."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.may_reply = asyncio.Event()
        self.two_sent = asyncio.Event()

    async def __call__(self, batch: list[int]) -> Sequence[int | Exception]:
        self.batches.append(batch)
        if len(self.batches) == 2:
            self.two_sent.set()
        await self.may_reply.wait()
        return [each * 10 if each >= 0 else ValueError(each) for each in batch]


async def test_items_accumulate_while_all_batches_are_in_flight() -> None:
    sent = Sent()
    batcher = Batcher(sent, name="test", parallel=2, max_items=2)
    replies = [batcher.submit(number) for number in range(7)]
    await sent.two_sent.wait()
    assert sent.batches == [[0, 1], [2, 3]]
    sent.may_reply.set()
    assert await asyncio.gather(*replies) == [number * 10 for number in range(7)]
    assert sent.batches == [[0, 1], [2, 3], [4, 5], [6]]


async def test_failed_batch_is_raised_to_all_and_the_next_is_sent() -> None:
    attempts = 0

    async def send(batch: list[int]) -> list[int]:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise ConnectionError("away")
        return batch

    batcher = Batcher(send, name="test", max_items=2)
    replies = [batcher.submit(number) for number in range(3)]
    for reply in replies[:2]:
        with pytest.raises(ConnectionError):
            await reply
    assert await replies[2] == 2


async def test_closing_fails_waiting_and_later_items() -> None:
    sent = Sent()
    batcher = Batcher(sent, name="test", max_items=1, parallel=2)
    replies = [batcher.submit(number) for number in range(3)]
    await sent.two_sent.wait()
    await batcher.aclose()
    for reply in [*replies, batcher.submit(4)]:
        with pytest.raises(BatcherClosed):
            await reply


async def test_item_is_sent_at_once_if_nothing_is_on_its_way() -> None:
    sent = Sent()
    batcher = Batcher(sent, name="test", parallel=2)
    replies = asyncio.gather(*(batcher.send(number) for number in range(3)))
    await sent.two_sent.wait()
    sent.may_reply.set()
    assert await replies == [0, 10, 20]
    assert sent.batches == [[0], [1, 2]]
    assert batcher.is_idle


async def test_items_that_gather_are_sent_when_the_first_caller_is_canceled() -> None:
    sent = Sent()
    batcher = Batcher(sent, name="test")
    first, second = asyncio.create_task(batcher.send(1)), asyncio.create_task(batcher.send(2))
    await asyncio.sleep(0)
    first.cancel()
    sent.may_reply.set()
    assert await second == 20
    assert sent.batches == [[1], [2]]
