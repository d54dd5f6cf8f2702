"""The examples of docs/dashboard.md that say who a user is; tests/contrib/django has Django's."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from httpx import BasicAuth
from itsdangerous import TimestampSigner

from aioqless import Client
from tests.contrib.dashboard.test_process import running
from tests.contrib.dashboard.test_proxy import behind_nginx
from tests.pages import ROOT, blocks, command_lines

PAGE = ROOT / "docs" / "dashboard.md"
(OAUTH2_PROXY,) = blocks(PAGE, "text")
(NGINX,) = blocks(PAGE, "nginx")
FASTAPI, _DJANGO = blocks(PAGE, "python")


def documented(word: str) -> list[str]:
    """Return the only documented command line that has a word."""
    (line,) = [each for each in command_lines(PAGE) if word in each]
    return shlex.split(line, comments=True)


def apr1(password: str) -> str:
    """Return a hash of a password as htpasswd makes it, and a line break."""
    command = ["openssl", "passwd", "-apr1", password]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


async def test_nginx_with_basic_authentication_names_users(
    nginx_program: str, redis_url: str, tmp_path: Path
) -> None:
    path, users = tmp_path / "web.sock", tmp_path / "users"
    hashed = {name: apr1(f"password of {name}") for name in ("ada", "eve")}
    users.write_text("".join(f"{name}:{each}" for name, each in hashed.items()))
    socket = "/run/aioqless/web.sock"
    words = [each.replace(socket, str(path)) for each in documented("--socket")]
    block = NGINX.partition("{")[2].rpartition("}")[0]
    block = block.replace("/etc/nginx/users", str(users)).replace(socket, str(path))
    block = "\n".join(line for line in block.splitlines() if "proxy_pass" not in line) + "\n"
    with (
        running(*words, "--url", redis_url) as url,
        behind_nginx(nginx_program, f"http://{url}", tmp_path, block) as proxy,
    ):
        assert url == f"unix:{path}"
        transport = httpx.AsyncHTTPTransport(retries=10)  # while nginx starts
        async with httpx.AsyncClient(
            base_url=proxy, transport=transport, trust_env=False, timeout=60
        ) as http:
            forged = {"X-Forwarded-User": "ada"}
            ada, eve = (BasicAuth(name, f"password of {name}") for name in ("ada", "eve"))
            for auth, path_, headers, status in (
                (None, "/queues", {}, 401),
                (None, "/queues", forged, 401),
                (BasicAuth("ada", "wrong"), "/queues", {}, 401),
                (ada, "/audit-log", {}, 200),
                (eve, "/queues", {}, 403),
                (eve, "/audit-log", forged, 403),
            ):
                answer = await http.get(path_, auth=auth or httpx.Auth(), headers=headers)
                assert answer.status_code == status, (auth, path_, headers)


async def test_header_of_oauth2_proxy_names_users(redis_url: str) -> None:
    words = [*documented("X-Forwarded-Email"), "--role", "ada@example.com=admin"]
    proxy = shlex.split(OAUTH2_PROXY)
    assert proxy[proxy.index("--upstream") + 1] == "http://127.0.0.1:8787"  # of `aioqless web`
    with running(*words, "--port", "0", "--url", redis_url) as url:
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as http:
            for user, path, status in (
                ("ada@example.com", "/audit-log", 200),
                ("eve@example.com", "/audit-log", 403),
                ("eve@example.com", "/queues", 200),
            ):
                # as oauth2-proxy sends them by default
                headers = {"X-Forwarded-Email": user, "X-Forwarded-User": "1234567"}
                assert (await http.get(path, headers=headers)).status_code == status
            assert (await http.get("/queues")).status_code == 403


def cookie_of(user: Any) -> str:
    """Return a cookie as Starlette's SessionMiddleware sets it."""
    import base64

    data = base64.b64encode(json.dumps({"user": user}).encode())
    return f"session={TimestampSigner('of your app').sign(data).decode()}"


async def test_fastapi_app_says_who_its_users_are(
    client: Client, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIOQLESS_URL", redis_url)
    monkeypatch.setenv("AIOQLESS_NAMESPACE", client.namespace)
    names: dict[str, Any] = {}
    exec(FASTAPI, names)
    async with opened(names) as http:
        assert (await http.get("/jobs/")).status_code == 403
        for is_staff, status in ((True, 200), (False, 403)):
            cookie = cookie_of({"email": "ada@example.com", "is_staff": is_staff})
            assert (await http.get("/jobs/", headers={"Cookie": cookie})).status_code == 200
            answer = await http.get("/jobs/audit-log", headers={"Cookie": cookie})
            assert answer.status_code == status
        assert (await http.get("/jobs/", headers={"Cookie": f"{cookie}x"})).status_code == 403


@asynccontextmanager
async def opened(names: dict[str, Any]) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=names["app"])
    async with (
        names["lifespan"](names["app"]),
        httpx.AsyncClient(transport=transport, base_url="https://shop.example") as http,
    ):
        yield http
