"""Live updates: renders the pages that are open and sends each to the browsers that show it.

A page that several readers have open is rendered once for all of them. Readers take turns, whatever
the number of pages that each has open. All of it reads Redis over a throttled connection.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from aioqless.client import REDIS_UNAVAILABLE, CommandConnection
from aioqless.contrib.dashboard.dashboard import Dashboard
from aioqless.contrib.dashboard.page_request import PageRequest
from aioqless.contrib.dashboard.rendering import Renderer
from aioqless.contrib.dashboard.throttled_connection import ThrottledConnection
from aioqless.runtime.log import log
from aioqless.runtime.tasks import cancel_and_wait, wait_for_event

RENDER_INTERVAL = 1.0  # seconds from one rendering of a page to the next, at least
# Seconds after a rendering, at most. The pause is as long as the rendering kept the processor busy:
# large pages leave half of this process to requests.
MAX_PAUSE = 2.0
# About how many commands of Redis per second all pages take, beside the overview that they share;
# and seconds of a pause for it, at most.
COMMAND_RATE, MAX_COMMAND_PAUSE = 40.0, 15.0
# That of the seconds after a user's action, whose effect users want to see.
FRESH, FRESH_PAUSE = 10.0, 1.0
CONFIRM_INTERVAL = 2.0  # seconds after which an unchanged page is confirmed; page.js waits for 15
# seconds for which a reader that left keeps its turn: reconnecting must not be a way to the front
REMEMBERED = 10.0
# seconds of silence after which a comment shows proxies that the connection is in use
KEEP_ALIVE = 15.0
LIFETIME = 300.0  # seconds after which a browser reconnects, so that its rights are checked again
RECONNECT = 1500  # milliseconds
RETRY_REFUSED = 30_000  # milliseconds
MAX_STREAMS = 1000
MAX_STREAMS_PER_READER = 25


@dataclass(eq=False)
class Reader:
    """One user, or one browser where there are no users."""

    streams: int = 0
    served: float = -1e9  # when a page of this reader was rendered last


@dataclass(eq=False)
class Follower:
    """One browser that shows a page."""

    reader: Reader
    rendered: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False)
class Topic:
    """One page as all readers with the same rights see it."""

    request: PageRequest
    html: str = ""
    rendered: float = -1e9
    followers: set[Follower] = field(default_factory=set)

    @property
    def turn(self) -> tuple[float, float]:
        """The order of rendering: the reader who has waited longest, then the page that has."""
        return min(each.reader.served for each in self.followers), self.rendered


class LiveUpdates:
    """Owns the topics, the readers, and the task that renders one topic after the other."""

    def __init__(self, dashboard: Dashboard, renderer: Renderer) -> None:
        self._dashboard = dashboard
        self._renderer = renderer
        self._client = dashboard.client
        self._topics: dict[tuple[object, ...], Topic] = {}
        self._readers: dict[str, Reader] = {}
        self._added = asyncio.Event()
        self._rendering_task: asyncio.Task[None] | None = None
        self._commands = 0  # of Redis, as estimated
        self._changed = -1e9  # when a reader changed something
        self._pause_ends = asyncio.Event()

    @property
    def streams(self) -> int:
        """The number of browsers with a live page."""
        return sum(reader.streams for reader in self._readers.values())

    async def follow(self, request: PageRequest, reader_name: str) -> AsyncGenerator[str, None]:
        """Yield the page's contents now and after each change, as server-sent events.

        The stream ends after some minutes. A reader with too many live pages gets one event,
        `refused`, with the reason.
        """
        reader = self._reader(reader_name)
        if refusal := self._refusal(reader):
            yield f"retry: {RETRY_REFUSED}\nevent: refused\ndata: {json.dumps(refusal)}\n\n"
            return
        key = (
            request.root,
            request.path,
            *sorted(request.query.items()),
            request.user.role,
            request.sees_data,
        )
        topic, follower = self._topics.setdefault(key, Topic(request)), Follower(reader)
        reader.streams += 1
        topic.followers.add(follower)
        if asyncio.get_running_loop().time() - topic.rendered < RENDER_INTERVAL:
            follower.rendered.set()  # otherwise the browser has something newer
        self._start()
        try:
            yield f"retry: {RECONNECT}\n\n"
            async for event in _events(topic, follower):
                yield event
        finally:
            reader.streams -= 1
            topic.followers.discard(follower)
            if not topic.followers and self._topics.get(key) is topic:
                del self._topics[key]

    def note_change(self) -> None:
        """Render all pages again after a user's action, so that they show its effect."""
        self._changed = asyncio.get_running_loop().time()
        for topic in self._topics.values():
            topic.rendered = -1e9
        self._added.set()
        self._pause_ends.set()

    async def aclose(self) -> None:
        """Stop rendering."""
        if self._rendering_task:
            await cancel_and_wait(self._rendering_task)

    def _reader(self, name: str) -> Reader:
        if name not in self._readers:
            past = asyncio.get_running_loop().time() - REMEMBERED
            self._readers = {
                each: reader
                for each, reader in self._readers.items()
                if reader.streams or reader.served > past
            }
        return self._readers.setdefault(name, Reader())

    def _refusal(self, reader: Reader) -> str:
        if reader.streams >= MAX_STREAMS_PER_READER:
            return f"you have {reader.streams} live pages open, the most for one reader"
        if self.streams >= MAX_STREAMS:
            return f"{MAX_STREAMS:,} live pages are open, the most for this dashboard"
        return ""

    def _start(self) -> None:
        self._added.set()
        if self._rendering_task is None:
            self._client = self._dashboard.client.with_connection(self._throttle)
            self._rendering_task = asyncio.create_task(self._run(), name="aioqless pages")

    def _throttle(self, connection: CommandConnection) -> ThrottledConnection:
        return ThrottledConnection(connection, self._count)

    def _count(self, commands: int) -> None:
        self._commands += commands

    async def _run(self) -> None:
        try:
            while self._topics:
                if topic := await self._next_topic():
                    began, before = time.process_time(), self._commands
                    read_at = asyncio.get_running_loop().time()
                    self._pause_ends.clear()
                    html = await self._render(topic)
                    is_fresh = read_at < self._changed + FRESH
                    pause = max(
                        min(MAX_PAUSE, time.process_time() - began),
                        min(
                            FRESH_PAUSE if is_fresh else MAX_COMMAND_PAUSE,
                            (self._commands - before) / COMMAND_RATE,
                        ),
                    )
                    if read_at > self._changed:
                        self._show(topic, html)
                    await wait_for_event(self._pause_ends, pause)
        finally:
            self._rendering_task = None

    def _show(self, topic: Topic, html: str) -> None:
        topic.rendered = asyncio.get_running_loop().time()
        topic.html = topic.html if html == topic.html else html
        for follower in topic.followers:
            follower.reader.served = topic.rendered
            follower.rendered.set()

    async def _next_topic(self) -> Topic | None:
        """Return the topic to render now; None after waiting for one."""
        latest = asyncio.get_running_loop().time() - RENDER_INTERVAL
        due = [topic for topic in self._topics.values() if topic.rendered <= latest]
        if due:
            await asyncio.sleep(0)  # for requests, whatever rendering costs
            return min(
                (topic for topic in due if topic.followers),
                key=lambda topic: topic.turn,
                default=None,
            )
        self._added.clear()
        next_due = min(topic.rendered for topic in self._topics.values()) - latest
        await wait_for_event(self._added, next_due)
        return None

    async def _render(self, topic: Topic) -> str:
        try:
            await self._dashboard.read_overview(live=True)
            return await self._renderer.render_contents(replace(topic.request, client=self._client))
        except REDIS_UNAVAILABLE as error:
            return self._renderer.render_unavailable(topic.request, error)
        except Exception as error:  # of one page, which must not stop the others
            log.error("web.page_failed", path=topic.request.path, error=repr(error), exc_info=True)
            return self._renderer.render_unavailable(topic.request, error)


async def _events(topic: Topic, follower: Follower) -> AsyncGenerator[str, None]:
    loop = asyncio.get_running_loop()
    until, sent, shown = loop.time() + LIFETIME, -1e9, ""
    while (left := until - loop.time()) > 0:
        if not await wait_for_event(follower.rendered, min(KEEP_ALIVE, left)):
            yield ": keep-alive\n\n"
            continue
        follower.rendered.clear()
        if topic.html is not shown:
            shown = topic.html
            yield f"data: {json.dumps(shown)}\n\n"
        elif loop.time() - sent >= CONFIRM_INTERVAL:
            yield "event: checked\ndata\n\n"
        else:
            continue
        sent = loop.time()


class LiveStream(StreamingResponse):
    """A response of server-sent events.

    A server that shuts down cancels it; it then ends as a complete response, and the browser
    reconnects.
    """

    media_type = "text/event-stream"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        except asyncio.CancelledError:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
