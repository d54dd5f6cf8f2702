"""`aioqless api` as a process."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from aioqless import Client
from aioqless.contrib.http import Token
from tests.contrib.dashboard.test_process import start
from tests.contrib.http_api.conftest import SHOP

TOML = f'[shop]\nsecret = "{Token("shop", SHOP).hashes[0]}"\nmay_put = ["shop.*"]\n'
JOBS = "tests.contrib.http_api.jobs"


async def test_server_runs_until_sigterm(client: Client, redis_url: str, tmp_path: Path) -> None:
    (tmp_path / "tokens.toml").write_text(TOML)
    process = start(
        *("api", JOBS, "--tokens", str(tmp_path / "tokens.toml"), "--port", "0", "--log-json"),
        *("--url", redis_url, "--namespace", client.namespace, "--origin", "https://shop.example"),
    )
    assert process.stderr
    lines = iter(process.stderr.readline, "")
    url = next(
        each["url"] for each in map(json.loads, lines) if each["event"] == "http_api.started"
    )
    headers = {"Authorization": f"Bearer {SHOP}", "Origin": "https://shop.example"}
    async with httpx.AsyncClient(
        base_url=url, trust_env=False, headers=headers, timeout=60
    ) as http:
        answer = await http.post("/klasses/shop.greet", json={"name": "Ada"})
        assert answer.headers["access-control-allow-origin"] == "https://shop.example"
        found = await client.jobs.get(answer.json()["jid"])
        assert found and found.data == {"name": "Ada"}
        path = f"/klasses/shop.greet/results/{found.jid}"
        waiting = asyncio.create_task(http.get(path, params={"wait": 60}))
        await http.get("/health")  # which the server answers after it has begun to wait
        process.send_signal(signal.SIGTERM)
        _, rest = await asyncio.to_thread(process.communicate, timeout=60)
        assert (await waiting).status_code == 503
    assert process.returncode == 0 and "Traceback" not in rest and SHOP not in rest


@pytest.mark.parametrize("modules", [[JOBS], []], ids=["both", "tasks alone"])
async def test_jobs_and_human_tasks_are_served_by_one_process(
    client: Client, redis_url: str, modules: list[str]
) -> None:
    tokens = TOML if modules else TOML.replace('may_put = ["shop.*"]\n', "")
    tokens += 'may_reserve = ["review"]\n'
    await client.queue("review").put("Review", {}, jid="a")
    options = ("--port", "0", "--log-json", "--url", redis_url, "--namespace", client.namespace)
    process = start("api", *modules, "--tasks", "review", *options, AIOQLESS_TOKENS=tokens)
    with ExitStack() as stack:
        stack.callback(process.communicate)
        stack.callback(process.terminate)
        assert process.stderr
        lines = map(json.loads, iter(process.stderr.readline, ""))
        url = next(each["url"] for each in lines if each["event"] == "http_api.started")
        headers = {"Authorization": f"Bearer {SHOP}"}
        async with httpx.AsyncClient(
            base_url=url, trust_env=False, headers=headers, timeout=60
        ) as http:
            answer = await http.post("/klasses/shop.greet", json={"name": "Ada"})
            assert answer.is_success is bool(modules)
            answer = await http.post("/tasks/review/reservation", json={})
            assert answer.json()["task"]["jid"] == "a"


def test_wrong_proxy_is_refused() -> None:
    options = ("--trusted-proxies", "proxy", "--url", "redis://127.0.0.1:1")
    process = start("api", JOBS, *options, AIOQLESS_TOKENS=TOML)
    assert "must be an address" in process.communicate(timeout=60)[1] and process.returncode == 2


def test_api_without_anything_to_serve_is_refused() -> None:
    process = start("api", "--url", "redis://127.0.0.1:1", AIOQLESS_TOKENS=TOML)
    assert "name modules of handlers" in process.communicate(timeout=60)[1]
    assert process.returncode == 2


@pytest.mark.long
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux")
async def test_half_sent_bodies_do_not_keep_others_out(redis_url: str) -> None:
    command = shlex.join([sys.executable, "-m", "aioqless", "api", JOBS, "--port", "0"])
    process = subprocess.Popen(  # noqa: ASYNC220  nothing else happens here
        ["sh", "-c", f"ulimit -n 64; exec {command} --log-json --url {redis_url}"],
        stderr=subprocess.PIPE, text=True, env={**os.environ, "AIOQLESS_TOKENS": TOML},
    )  # fmt: skip
    assert process.stderr
    lines = iter(process.stderr.readline, "")
    url = next(
        each["url"] for each in map(json.loads, lines) if each["event"] == "http_api.started"
    )
    half = (
        f"POST /klasses/shop.greet HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer {SHOP}\r\n"
        "Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{"
    )
    with ExitStack() as stack:
        stack.callback(process.communicate)
        stack.callback(process.terminate)
        for _ in range(40):  # more than it takes
            address = ("127.0.0.1", httpx.URL(url).port)
            stack.enter_context(socket.create_connection(address)).sendall(half.encode())
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=15) as http:
            assert (await http.get("/health")).status_code == 200


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ("", "must have a token"),
        ('[shop]\nsecret = "x"', "must be its hash"),
        ("[shop", "AIOQLESS_TOKENS"),
    ],
)
def test_tokens_are_checked_before_redis_is_contacted(tokens: str, said: str) -> None:
    process = start("api", JOBS, "--url", "redis://127.0.0.1:1", AIOQLESS_TOKENS=tokens)
    assert said in process.communicate(timeout=60)[1] and process.returncode == 2


def test_missing_file_of_tokens_is_named() -> None:
    process = start("api", JOBS, "--tokens", "/nowhere/tokens.toml")
    assert "/nowhere/tokens.toml: No such file" in process.communicate(timeout=60)[1]
    assert process.returncode
