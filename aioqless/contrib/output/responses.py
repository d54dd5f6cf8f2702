"""Output as server-sent events, which browsers read with `EventSource`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING

from aioqless.client import json_types
from aioqless.client.job.state import Emitted, Ended, Missed, Output, Restarted
from aioqless.errors import NoSuchJob, require_extra

if TYPE_CHECKING:
    from starlette.responses import StreamingResponse

KEEP_ALIVE = 15.0  # seconds of silence after which a comment is sent
# Milliseconds after which a browser whose page doesn't close its EventSource asks again.
RETRY_AFTER_END = 86_400_000

HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


def server_sent_events(output: AsyncGenerator[Output, None]) -> StreamingResponse:
    """Return a response of Starlette or FastAPI that sends the output of a job to a browser.

    Args:
        output: What `client.jobs.output(jid, after=...)` returns; `after` is the request's header
            `Last-Event-ID`.
    """
    with require_extra("starlette"):
        from starlette.responses import StreamingResponse  # an application has it

    return StreamingResponse(encode_events(output), media_type="text/event-stream", headers=HEADERS)


async def encode_events(output: AsyncGenerator[Output, None]) -> AsyncIterator[bytes]:
    """Yield output as server-sent events, for any framework.

    Values are messages whose data is JSON. The other events are `restarted`, `missed` with the
    number of missing values, and `end` with the state of the job, null if there is none. A comment
    is sent every 15 seconds, to notice that the browser has disconnected.

    Args:
        output: What `client.jobs.output(jid, after=...)` returns.
    """
    async with aclosing(output):
        reading: asyncio.Future[Output] | None = None
        try:
            while True:
                reading = reading or asyncio.ensure_future(anext(output))
                done, _ = await asyncio.wait([reading], timeout=KEEP_ALIVE)
                if not done:
                    yield b": silent\n\n"
                    continue
                found, reading = reading, None
                try:
                    yield _encode(found.result())
                except StopAsyncIteration:
                    return
                except NoSuchJob:
                    yield _encode(Ended(None, "0-0-end"))
                    return
        finally:
            if reading is not None:
                reading.cancel()
                await asyncio.wait([reading])


def _encode(output: Output) -> bytes:
    match output:
        case Emitted(value=value):
            text = b"data: " + json_types.encode(value)
        case Restarted():
            text = b"event: restarted\ndata: null"
        case Missed(count=count):
            text = b"event: missed\ndata: %d" % count
        case Ended(state=state):
            text = b"event: end\nretry: %d\ndata: " % RETRY_AFTER_END + json_types.encode(state)
    return b"id: %s\n%s\n\n" % (output.id.encode(), text)
