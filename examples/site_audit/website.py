"""The website: this Python's own documentation, as pydoc serves it. Nothing here knows of
queues."""

from __future__ import annotations

import asyncio
import sys
import time
from html.parser import HTMLParser
from typing import Self
from urllib.parse import urldefrag, urljoin
from urllib.request import ProxyHandler, build_opener

# It ends when its input does, however we end; not in good order, for pydoc imports anew what it
# shows, and threading is among that.
SERVE = """
import os, pydoc, sys
print(pydoc._start_server(pydoc._url_handler, "127.0.0.1", 0).url, flush=True)
sys.stdin.read()
os._exit(0)
"""
# What is imported to be shown may open windows, print, or run tests; and some have very many pages
# that are all alike.
SKIPPED = {
    "antigravity",
    "encodings",
    "idlelib",
    "lib2to3",
    "test",
    "tests",
    "this",
    "tkinter",
    "turtle",
    "turtledemo",
}


class Website:
    """Serves pages within `async with`. Their addresses are relative to the site: its port is
    another one each time."""

    def __init__(self) -> None:
        self._turn = (
            asyncio.Lock()
        )  # pydoc serves one page at a time, and the wait for another one should not count
        self._open = build_opener(ProxyHandler({})).open

    async def __aenter__(self) -> Self:
        pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        command = (
            sys.executable,
            "-ISB",
            "-c",
            SERVE,
        )  # isolated: the standard library and nothing else
        # A session of its own is out of Ctrl-C's reach: the pages under way can still be fetched.
        self._server = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=null, start_new_session=True
        )
        assert self._server.stdout
        self._url = (await self._server.stdout.readline()).decode().strip()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.kill()
        await self._server.wait()

    async def fetch(self, address: str) -> tuple[str, float]:
        """The page's HTML, and the seconds it took. Raises OSError and HTTPException."""
        async with self._turn:
            began = time.perf_counter()
            html = await asyncio.to_thread(self._get, address)
            return html, time.perf_counter() - began

    def _get(self, address: str) -> str:
        with self._open(self._url + address, timeout=30) as response:
            return str(response.read(), "utf-8")


class Contents(HTMLParser):
    """What is on a page: anchors, links to pages of the site (`address#anchor`), and perhaps
    pydoc's `error` instead of what was asked."""

    def __init__(self, address: str, html: str) -> None:
        super().__init__()
        self.links: dict[str, None] = {}  # each once, in order
        self.anchors: dict[str, None] = {}
        self._address = address
        self._texts: list[str] = []
        self.feed(html)
        self.close()
        failed = self._texts[0].startswith("Pydoc: Error")  # in the title: the status is always 200
        self.error = self._texts[-1].partition(": ")[2] if failed else None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a" and (href := given.get("href")):
            link = urljoin(self._address, href)
            if is_ours(urldefrag(link).url):
                self.links[link] = None
        if anchor := given.get("id") or (given.get("name") if tag == "a" else None):
            self.anchors[anchor] = None

    def handle_data(self, data: str) -> None:
        if data.strip():
            self._texts.append(data.strip())


def is_ours(address: str) -> bool:
    """Whether it is a page of the site, and neither of a private module nor one that is skipped."""
    module = address.removesuffix(".html")
    if module == address or "/" in module:
        return address.startswith("topic?key=")
    return not any(part in SKIPPED or part.startswith("_") for part in module.split("."))
