"""`aioqless api` as a process."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import httpx
import pytest

from aioqless import Client
from aioqless.contrib.http import Token
from tests.contrib.dashboard.test_process import running, start
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
    options = ("--port", "0", "--url", redis_url, "--namespace", client.namespace)
    with running("api", *modules, "--tasks", "review", *options, AIOQLESS_TOKENS=tokens) as url:
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


def test_tokens_are_checked_before_redis_is_contacted() -> None:
    process = start("api", JOBS, "--url", "redis://127.0.0.1:1", AIOQLESS_TOKENS="[shop")
    assert "AIOQLESS_TOKENS" in process.communicate(timeout=60)[1] and process.returncode == 2
