"""The routes of the page on output stream to a client of HTTP, in each framework."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import httpx
import litestar
import pytest
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import StreamingHttpResponse
from django.test import override_settings
from django.urls import path
from litestar.params import FromPath
from litestar.response import Stream
from starlette.applications import Starlette
from starlette.routing import Mount

import aioqless
from aioqless import Client
from tests.contrib.output.test_output import count, worker
from tests.embedding.hosts import serve_asgi
from tests.pages import ROOT, blocks

PAGE = ROOT / "docs" / "output.md"


def run_examples(*parts: str, **names: Any) -> dict[str, Any]:
    """Run the blocks of the page that contain these parts."""
    found = [*blocks(PAGE, "python"), *blocks(PAGE, "py")]
    names |= {"aioqless": aioqless, "__name__": __name__}
    for part in parts:
        [block] = [each for each in found if part in each]
        exec(compile(block, PAGE, "exec", dont_inherit=True), names)
    return names


@contextmanager
def fastapi_app() -> Iterator[Any]:
    yield run_examples("import FastAPI")["app"]


@contextmanager
def litestar_app() -> Iterator[Any]:
    names = {"get": litestar.get, "Request": litestar.Request, "Stream": Stream}
    names |= {"FromPath": FromPath}
    yield litestar.Litestar([run_examples("def stream(", "# Litestar", **names)["output"]])


@contextmanager
def django_app() -> Iterator[Any]:
    given = {"StreamingHttpResponse": StreamingHttpResponse}
    names = run_examples("def stream(", "# Django", **given)
    if not settings.configured:
        settings.configure(SECRET_KEY="secret")
    urls = (path("answers/<jid>", names["output"]),)
    with override_settings(ROOT_URLCONF=urls, ALLOWED_HOSTS=["*"], MIDDLEWARE=[]):
        django: Any = get_asgi_application()
        yield Starlette(routes=[Mount("/", app=django)])


@pytest.mark.parametrize("app", [fastapi_app, litestar_app, django_app])
async def test_route_streams_output_and_continues_after_the_last_event(
    client: Client, app: Callable[[], AbstractContextManager[Any]]
) -> None:
    jid = await client.queue("default").put(count.data(to=50, pause=0.005))
    with app() as served:
        async with (
            serve_asgi(served) as host,
            httpx.AsyncClient(base_url=host.url) as browser,
        ):
            async with (
                browser.stream("GET", f"/answers/{jid}") as response,
                worker(client, count),
            ):
                assert response.headers["content-type"].startswith("text/event-stream")
                assert response.headers["x-accel-buffering"] == "no"
                text = "".join([part async for part in response.aiter_text()])
            assert re.findall(r"^data: (\d+)$", text, re.M) == [str(n) for n in range(50)]
            again = await browser.get(f"/answers/{jid}", headers={"Last-Event-ID": "1-48"})
            assert re.findall(r"^data: (\d+)$", again.text, re.M) == ["48", "49"]
            ended = await browser.get(f"/answers/{jid}", headers={"Last-Event-ID": "1-50-end"})
            assert ended.text == ""
