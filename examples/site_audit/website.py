"""The website: this Python's own documentation, served by pydoc; no queues."""

from __future__ import annotations

import asyncio
import sys
import time
from html.parser import HTMLParser
from typing import Self
from urllib.parse import urldefrag, urljoin
from urllib.request import ProxyHandler, build_opener

# The server ends when its standard input closes, however this process ends. It skips the normal
# exit, since pydoc imports the modules it shows again, threading among them.
SERVE = """
import os, pydoc, sys
print(pydoc._start_server(pydoc._url_handler, "127.0.0.1", 0).url, flush=True)
sys.stdin.read()
os._exit(0)
"""
# Importing these opens windows, prints or runs tests, or they have very many similar pages.
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
    """Serves pages within `async with`, by addresses relative to the site."""

    def __init__(self) -> None:
        # pydoc serves one page at a time; waiting for another page must not count as slow
        self._turn = asyncio.Lock()
        self._open = build_opener(ProxyHandler({})).open

    async def __aenter__(self) -> Self:
        pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        command = (sys.executable, "-ISB", "-c", SERVE)  # isolated: only the standard library
        # In its own session Ctrl-C doesn't reach it: running jobs can still fetch their pages.
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
        """Return the HTML of a page, and the seconds it took.

        Raises:
            OSError: The connection failed.
            HTTPException: The response was incomplete.
        """
        async with self._turn:
            began = time.perf_counter()
            html = await asyncio.to_thread(self._get, address)
            return html, time.perf_counter() - began

    def _get(self, address: str) -> str:
        with self._open(self._url + address, timeout=30) as response:
            return str(response.read(), "utf-8")


class Contents(HTMLParser):
    """Anchors of a page, links to pages of the site (`address#anchor`), and pydoc's error."""

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
    """Return whether an address is a page of the site, and neither private nor skipped."""
    module = address.removesuffix(".html")
    if module == address or "/" in module:
        return address.startswith("topic?key=")
    return not any(part in SKIPPED or part.startswith("_") for part in module.split("."))
