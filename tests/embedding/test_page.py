"""The programs of docs/embedding.md, stopped while a job runs."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from aioqless import Client
from tests.conftest import Until, existing_job

PAGE = (Path(__file__).parents[2] / "docs" / "embedding.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
WORK, CONTEXT, QUART_WORKER, SANIC_WORKER, REQUEST, STREAM = BLOCKS

JOBS = """
import asyncio, os, aioqless

@aioqless.job
async def greet(job: aioqless.Job, name: str) -> None:
    while not os.path.exists("go"):
        job.progress(0.3)
        await asyncio.sleep(0.1)
"""
UVICORN = """
import aioqless
from aioqless import Client
from app import jobs
from app.work import working
{application}
import uvicorn
uvicorn.run(app, port=0, ws="none", timeout_graceful_shutdown=2)
"""
LOGGING = "import logging\nlogging.basicConfig(level=logging.INFO)\n"
FASTAPI = "from fastapi import FastAPI\napp = FastAPI(lifespan=working)\n" + REQUEST
STARLETTE = f"""
import json
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route
{STREAM}
async def greet(request):
    jid = await Client.current().queue("mail").put(jobs.greet.data(name="Ada"))
    return JSONResponse({{"jid": jid}})

routes = [
    Route("/greetings/Ada", greet, methods=["POST"]),
    Route("/jobs/{{jid}}/events", events),
]
app = Starlette(routes=routes, lifespan=working)
"""
LITESTAR = """
import litestar

@litestar.post("/greetings/{name:str}")
async def greet(name: str) -> dict[str, str]:
    return {"jid": await Client.current().queue("mail").put(jobs.greet.data(name=name))}

app = litestar.Litestar([greet], lifespan=[working], logging_config=None)
"""
AIOHTTP = f"""
import aiohttp.web
import aioqless
from aioqless import Client
from app import jobs
from app.work import working
{CONTEXT}
async def greet(request):
    jid = await Client.current().queue("mail").put(jobs.greet.data(name="Ada"))
    return aiohttp.web.json_response({{"jid": jid}})

app = aiohttp.web.Application()
app.cleanup_ctx.append(context)
app.router.add_post("/greetings/Ada", greet)
aiohttp.web.run_app(app, host="127.0.0.1", port=0, print=lambda told: print(told, flush=True))
"""
QUART = f"""
from quart import Quart
import aioqless
from aioqless import Client
from app import jobs
from app.work import working
app = Quart(__name__)
{QUART_WORKER}
@app.post("/greetings/<name>")
async def greet(name):
    return {{"jid": await Client.current().put(jobs.greet.data(name=name), queue="mail")}}

import asyncio
from hypercorn.asyncio import serve
from hypercorn.config import Config
config = Config()
config.bind = ["127.0.0.1:0"]
asyncio.run(serve(app, config))
"""
SANIC = f"""
import contextlib, socket
from sanic import Sanic, json
import aioqless
from aioqless import Client
from app import jobs
from app.work import working
app = Sanic("app")
{SANIC_WORKER}
@app.post("/greetings/<name:str>")
async def greet(request, name):
    return json({{"jid": await Client.current().put(jobs.greet.data(name=name), queue="mail")}})

if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print("http://127.0.0.1:%s" % listening.getsockname()[1], flush=True)
        app.run(sock=listening, single_process=True, access_log=False, motd=False)
"""
MAINS = {
    "quart": QUART,
    "sanic": SANIC,
    "fastapi": UVICORN.format(application=FASTAPI),
    "starlette": UVICORN.format(application=STARLETTE),
    "litestar": UVICORN.format(application=LITESTAR),
    "aiohttp": AIOHTTP,
}


def start_page(folder: Path, told: Path, redis_url: str) -> subprocess.Popen[bytes]:
    with told.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "main.py"],
            cwd=folder,
            env={**os.environ, "AIOQLESS_URL": redis_url},
            stdout=out,
            stderr=out,
        )


@pytest.mark.parametrize("framework", MAINS)
async def test_stopping_server_ends_after_its_running_job(
    client: Client, tmp_path: Path, until: Until, redis_url: str, namespace: str, framework: str
) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "jobs.py").write_text(JOBS)
    (tmp_path / "app" / "work.py").write_text(
        WORK.replace("Client()", f"Client(namespace={namespace!r})")
    )
    (tmp_path / "main.py").write_text(LOGGING + MAINS[framework])
    told = tmp_path / "told"
    server = start_page(tmp_path, told, redis_url)
    try:
        found = await until(
            lambda: (
                re.search(r"(http://127.0.0.1:\d+)", told.read_text()) or server.poll() is not None
            ),
        )
        assert found is not True, told.read_text()
        async with httpx.AsyncClient(base_url=found[1], trust_env=False, timeout=60) as http:
            jid = (await http.post("/greetings/Ada")).json()["jid"]
            if framework == "starlette":
                await _read_to_the_middle(http, jid)

        async def runs() -> bool:
            job = await client.jobs.get(jid)
            return job is not None and job.state == "running"

        await until(runs)
        server.send_signal(signal.SIGTERM)
        await until(lambda: "worker.shutdown_started" in told.read_text())
        (tmp_path / "go").touch()
        assert await asyncio.to_thread(server.wait, 60) in (0, -signal.SIGTERM), told.read_text()
    finally:
        server.kill()
        server.wait()
    assert (await existing_job(client, jid)).state == "complete", told.read_text()
    assert "worker.stopped" in told.read_text()


async def _read_to_the_middle(http: httpx.AsyncClient, jid: str) -> None:
    """Read the page's stream until it reports progress."""
    async with http.stream("GET", f"/jobs/{jid}/events") as answer:
        async for line in answer.aiter_lines():
            if '"share": 0.3' in line:
                return
    raise AssertionError("the stream ended before")
