"""Sessions of browsers in the HTTP API, tried on a task queue."""

from __future__ import annotations

import time

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount
from starlette.types import ASGIApp

from aioqless import Client
from aioqless.contrib.http import Identity, Tokens, create_api
from aioqless.contrib.human_tasks import TaskQueue
from aioqless.contrib.human_tasks.api import task_router
from tests.contrib.human_tasks.conftest import HOST, KNOWN, SECRETS, Browser, ada, app, tasks

__all__ = ["ada", "app", "tasks"]  # fixtures


async def put(client: Client, jid: str) -> None:
    await client.queue("review").put("Review", {"text": jid}, jid=jid)


async def test_cookie_is_out_of_reach_of_scripts_and_other_sites(app: ASGIApp) -> None:
    cookie = (await Browser(app, "Eve").sign_in()).headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "secure" not in cookie
    assert "max-age=604800" in cookie


async def test_cookie_of_another_server_is_ignored(tasks: TaskQueue, ada: Browser) -> None:
    for secret, known in ((None, False), ("0123456789abcdef", True)):
        first, second = (
            Browser(
                create_api(task_router({"review": tasks}), identify=KNOWN, secret=secret), "Ada"
            )
            for _ in range(2)
        )
        await first.sign_in()
        second.http.cookies = first.http.cookies
        assert ((await second.http.get("/session")).json()["person"] == "Ada") is known


async def test_cookie_is_invalid_after_signing_out(ada: Browser) -> None:
    kept = httpx.Cookies(ada.http.cookies)
    headers = {"X-Token": ada.token, "Content-Type": "application/json"}
    assert (
        await ada.http.request("DELETE", "/session", headers={"Content-Type": "application/json"})
    ).status_code == 403
    assert (await ada.http.request("DELETE", "/session", headers=headers)).json() == {
        "person": None,
        "token": None,
    }
    assert not ada.http.cookies
    ada.http.cookies = kept
    assert (await ada.ask("")).status_code == 401


async def test_session_ends_after_its_time(ada: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, later = httpx.Cookies(ada.http.cookies), time.time() + 7 * 86_400 + 1
    assert (await ada.ask("")).status_code == 200
    monkeypatch.setattr(time, "time", lambda: later)
    ada.http.cookies = kept
    assert (await ada.do("reservation")).status_code == 401


async def test_rotated_secret_is_valid_until_it_is_dropped(
    tasks: TaskQueue,
) -> None:
    secrets = ("0123456789abcdef", ["fedcba9876543210", "0123456789abcdef"], ["fedcba9876543210"])
    before, rotated, after = (
        Browser(create_api(task_router({"review": tasks}), identify=KNOWN, secret=each), "Ada")
        for each in secrets
    )
    await before.sign_in()
    rotated.http.cookies = httpx.Cookies(before.http.cookies)
    after.http.cookies = httpx.Cookies(before.http.cookies)
    rotated.token = before.token
    assert (await rotated.do("reservation")).status_code == 200
    assert (await after.ask("")).status_code == 401
    new = await rotated.sign_in()
    after.http.cookies = httpx.Cookies(rotated.http.cookies)
    assert new.status_code == 200 and (await after.ask("")).status_code == 200


@pytest.mark.parametrize(
    "token", [None, "", "wrong one", "\u00e9" * 40, SECRETS["Ada"][:-1], SECRETS["Ada"].upper()]
)
async def test_sign_in_requires_a_token(
    app: ASGIApp, token: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    browser = Browser(app, "Ada")
    for _ in range(5):
        answer = await browser.sign_in(token=token)
        assert (answer.status_code, answer.json()["code"]) == (401, "token")
        assert not browser.http.cookies
    refused = [vars(each)["event"] for each in caplog.records if each.name.startswith("aioqless")]
    assert refused == ["http_api.token_refused"], "one a minute of an address"


async def test_startup_token_is_generated_without_identify(
    tasks: TaskQueue, caplog: pytest.LogCaptureFixture
) -> None:
    browser = Browser(create_api(task_router({"review": tasks})), "Ada")
    (made,) = map(vars, caplog.records)
    secret = made["link"].partition("=")[2]
    assert made["event"] == "web.token_created" and len(secret) >= 32
    assert (await browser.sign_in(token=secret)).json()["person"] == "local"
    assert (await browser.ask("")).status_code == 200


async def test_same_origin_is_accepted(client: Client, ada: Browser) -> None:
    await put(client, "a")
    headers = {"X-Token": ada.token, "Origin": HOST, "Sec-Fetch-Site": "same-origin"}
    assert (
        await ada.http.post("/tasks/review/reservation", json={}, headers=headers)
    ).status_code == 200


@pytest.mark.parametrize(
    ("address", "host", "let_in"),
    [
        ("127.0.0.1", "http://localhost:8000", True), ("::1", "http://[::1]", True),
        ("127.8.8.8", "http://desk.localhost", True),
        ("10.0.0.7", HOST, False), ("127.0.0.1", "http://evil.example", False),
        ("127.0.0.1", "http://127.evil.example", False),
        ("127.0.0.1", "http://10.0.0.1", False),
    ],
)  # fmt: skip
async def test_only_loopback_requests_are_served_with_a_startup_token(
    tasks: TaskQueue, address: str, host: str, let_in: bool
) -> None:
    app = create_api(task_router({"review": tasks}), identify=Tokens.at_startup("s" * 32))
    answer = await Browser(app, "Ada", address=address, host=host).sign_in(token="s" * 32)
    assert (answer.status_code == 200) is let_in
    assert let_in or answer.json()["code"] == "sender"


async def test_cookie_of_a_mounted_api_is_secure_and_of_its_path(tasks: TaskQueue) -> None:
    async def identify(_: Request) -> Identity:
        return Identity("Ada", may_reserve=["review"])

    api = create_api(task_router({"review": tasks}), identify=identify, secret="0123456789abcdef")
    app = Starlette(routes=[Mount("/people", api)])
    browser = Browser(app, "Bob", address="10.0.0.7", host="https://desk.example/people")
    answer = await browser.sign_in()
    assert answer.json()["person"] == "Ada"  # the token in the request does not matter
    cookie = answer.headers["set-cookie"]
    assert "Secure" in cookie and "Path=/people" in cookie
    assert (await browser.do("reservation")).status_code == 200
