"""Pages that stay up to date: each that somebody looks at is made anew now and then, and sent to whoever looks at it.

All browsers together cost what one costs: the same page is read once for all, over a paced connection. With many different pages each
gets its turn less often; what Redis is asked stays the same.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from aioqless.connection import AWAY
from aioqless.log import log
from aioqless.web.asked import Asked
from aioqless.web.board import Board
from aioqless.web.paced import Paced
from aioqless.web.rendering import Rendering

EVERY = 1.0  # seconds from one making of a page to the next, at best
SAMPLED = 5.0  # seconds between looks at everything, for the rates of the last minutes
SILENCE = 15.0  # seconds after which a browser is told that it is still connected
LASTS = 300.0  # seconds after which a browser comes anew, and is asked anew who it is
MOST = 1000  # browsers at once


@dataclass(eq=False)
class Topic:
    """One page as somebody with these rights sees it."""

    asked: Asked
    html: str = ""
    made: float = -1e9
    followers: set[asyncio.Event] = field(default_factory=set)


class Live:
    """Owns the topics, and the task that makes them anew, one after the other, while anybody looks."""

    def __init__(self, board: Board, rendering: Rendering) -> None:
        self._board = board
        self._rendering = rendering
        self._client = board.client
        self._topics: dict[tuple[object, ...], Topic] = {}
        self._making: asyncio.Task[None] | None = None
        self.browsers = 0

    async def follow(self, asked: Asked) -> AsyncGenerator[str, None]:
        """The page's contents now and whenever they have changed, as server-sent events. Ends by itself after some minutes."""
        key = (asked.root, asked.path, *sorted(asked.query.items()), asked.who.role, asked.sees_data)
        topic = self._topics.setdefault(key, Topic(asked))
        changed = asyncio.Event()
        topic.followers.add(changed)
        self.browsers += 1
        if topic.html:
            changed.set()
        if self._making is None:
            self._client = self._board.client.over(Paced(self._board.client.scripts.connection))
            self._making = asyncio.create_task(self._make(), name="aioqless pages")
        until = asyncio.get_running_loop().time() + LASTS
        try:
            yield "retry: 1500\n\n"
            while (left := until - asyncio.get_running_loop().time()) > 0:
                try:
                    async with asyncio.timeout(min(SILENCE, left)):
                        await changed.wait()
                except TimeoutError:
                    yield ": still here\n\n"
                else:
                    changed.clear()
                    yield f"data: {json.dumps(topic.html)}\n\n"
        finally:
            self.browsers -= 1
            topic.followers.discard(changed)
            if not topic.followers and self._topics.get(key) is topic:
                del self._topics[key]

    async def aclose(self) -> None:
        """Make no more."""
        if self._making:
            self._making.cancel()
            await asyncio.wait([self._making])

    async def _make(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._topics:
                topic = min(self._topics.values(), key=lambda each: each.made)
                await asyncio.sleep(max(0.0, topic.made + EVERY - loop.time()))
                topic.made = loop.time()
                try:
                    await self._board.sampler.fresh(self._client, within=SAMPLED)
                    html = await self._rendering.contents(replace(topic.asked, client=self._client))
                except AWAY as away:
                    html = self._rendering.away(topic.asked, away)
                except Exception as error:  # one page's, not that of all others
                    log.error("web.broken", path=topic.asked.path, error=repr(error), exc_info=True)
                    html = self._rendering.away(topic.asked, error)
                topic.made = loop.time()
                if html != topic.html:
                    topic.html = html
                    for changed in topic.followers:
                        changed.set()
        finally:
            self._making = None


class Stream(StreamingResponse):
    """Events. A server that stops waits for them, then cancels: they end in good order, and browsers come back when it is there again."""

    media_type = "text/event-stream"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except asyncio.CancelledError:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
