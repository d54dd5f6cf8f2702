"""The human-task API over HTTP: operations, sessions and access."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount
from starlette.types import ASGIApp

from aioqless import Client
from aioqless.contrib.http import Identity, Token, Tokens, create_api
from aioqless.contrib.http.json_api import MAX_BODY
from aioqless.contrib.human_tasks import TaskQueue
from aioqless.contrib.human_tasks.api import task_router
from tests.conftest import Until
from tests.contrib.human_tasks.conftest import HOST, KNOWN, SECRETS, Browser

VERBS: dict[str, dict[str, Any]] = {
    "extend": {}, "skip": {}, "give-back": {}, "finish": {"answer": 1}, "reject": {"reason": "no"},
    "hand-over": {"to": "Eve"},
}  # fmt: skip


async def put(client: Client, *jids: str) -> None:
    for jid in jids:
        await client.queue("review").put("Review", {"text": jid}, jid=jid)


def held(task: dict[str, Any]) -> dict[str, Any]:
    return {"jid": task["jid"], "fence": task["fence"]}


# The usual operations


async def test_job_is_reserved_extended_and_finished(client: Client, ada: Browser) -> None:
    await put(client, "a")
    task = await ada.reserve(limit=60)
    assert (task["jid"], task["klass"], task["data"]) == ("a", "Review", {"text": "a"})
    assert 30 < task["left"] <= 60
    assert (await ada.ask("")).json() == {
        "name": "review", "waiting": 0, "reserved": 1, "paused": False, "limit": 300,
        "longest": 600,
    }  # fmt: skip
    assert (
        570
        < (await ada.do("extend", "1", "click", limit=100_00, **held(task))).json()["left"]
        <= 600
    )
    assert (await ada.do("finish", answer={"label": "cat"}, **held(task))).json() == {
        "state": "complete"
    }
    assert await client.jobs.result("a") == {"label": "cat"}
    job = await client.jobs.get("a")
    assert job and job.history[0]["worker"].startswith("Ada@")


async def test_each_operation_leaves_the_job_in_its_state(client: Client, ada: Browser) -> None:
    for verb, state in (
        ("skip", "waiting"),
        ("give-back", "waiting"),
        ("reject", "failed"),
        ("hand-over", "running"),
    ):
        await put(client, verb)
        task = await ada.reserve(verb)
        assert (await ada.do(verb, verb, **held(task), **VERBS[verb])).json() == {"state": state}
        job = await client.jobs.get(verb)
        assert job and job.state == state
        await job.cancel()


async def test_reload_returns_the_reservation_of_the_tab(client: Client, ada: Browser) -> None:
    await put(client, "a", "b")
    assert (await ada.ask("reservation")).json() == {"task": None, "skipped": 0}
    task = await ada.reserve()
    again = (await ada.ask("reservation")).json()["task"]
    assert held(again) == held(task) and 270 < again["left"] <= 300
    assert (await client.queue("review").counts()).running == 1


async def test_another_tab_gets_another_job(client: Client, ada: Browser) -> None:
    await put(client, "a", "b")
    first, second = await asyncio.gather(ada.reserve("1"), ada.reserve("2"))
    assert {first["jid"], second["jid"]} == {"a", "b"}
    assert await ada.reserve("3") is None
    assert (await ada.do("finish", "2", answer=1, **held(first))).status_code == 409


async def test_double_click_counts_once(client: Client, ada: Browser) -> None:
    await put(client, "a", "b")
    clicks = await asyncio.gather(
        *(ada.do("reservation", "1", "k1") for _ in range(2)),
        *(ada.do("reservation") for _ in range(5)),
    )
    tasks = [click.json()["task"] for click in clicks]
    assert len({(task["jid"], task["fence"]) for task in tasks}) == 1
    done = await asyncio.gather(
        *(ada.do("finish", "1", "k2", answer=n, **held(tasks[0])) for n in range(5))
    )
    assert [each.json() for each in done] == [{"state": "complete"}] * 5
    late = await ada.do("finish", "1", "k3", answer=9, **held(tasks[0]))
    assert (late.status_code, late.json()["code"]) == (409, "state")


async def test_skipped_jobs_are_counted_and_offered_only_on_request(
    client: Client, ada: Browser
) -> None:
    await put(client, "a")
    await ada.do("skip", **held(await ada.reserve()))
    assert (await ada.do("reservation")).json() == {"task": None, "skipped": 1}
    assert (await ada.reserve(again=True))["jid"] == "a"


async def test_late_request_is_told_who_has_the_job(
    client: Client, ada: Browser, bob: Browser, until: Until
) -> None:
    await put(client, "a")
    task = await ada.reserve(limit=0.05)

    async def over() -> bool:
        return bool((await ada.ask("status", jid="a")).json()["what"] == "over")

    await until(over)
    taken = await bob.reserve()
    late = await ada.do("finish", answer="late", **held(task))
    assert (late.status_code, late.json()["code"], late.json()["by"]) == (409, "lost", "Bob")
    assert (await ada.ask("status", jid="a")).json() == {"what": "taken", "by": "Bob"}
    await bob.do("finish", answer="cat", **held(taken))
    assert (await ada.ask("status", jid="a")).json() == {"what": "finished", "by": "Bob"}


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ('"\\ud800"', '"\\ud800"'),
        ("nope", "nope"),
        ("[" * 100_000 + "]" * 100_000, "[" * 100_000 + "]" * 100_000),
        ("12345678901234567", 12345678901234567),
    ],
    ids=["half a pair", "no JSON", "deep", "a long number"],
)
async def test_any_data_of_another_client_can_be_shown(
    client: Client, ada: Browser, stored: str, shown: Any
) -> None:
    await put(client, "a")
    await client.redis.hset(f"{client.namespace}:j:a", mapping={"data": stored, "tags": '["x"]'})
    assert (await ada.reserve())["data"] == shown


# Refused requests


@pytest.mark.parametrize("verb", VERBS)
async def test_job_of_another_person_cannot_be_changed(
    client: Client, app: ASGIApp, ada: Browser, bob: Browser, verb: str
) -> None:
    await put(client, "a")
    task = await ada.reserve()
    namesake = Browser(app, "Ada")  # signed in under the same name, but in another session
    await namesake.sign_in()
    for thief, tab in ((bob, "1"), (namesake, "1"), (ada, "2")):
        answer = await thief.do(verb, tab, **held(task), **VERBS[verb])
        assert (answer.status_code, answer.json()["code"], answer.json()["by"]) == (
            409,
            "lost",
            "Ada",
        )
        assert (await thief.ask("status", tab, jid="a")).status_code == 404
    assert (await ada.ask("reservation")).json()["task"]["fence"] == task["fence"]


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


async def test_session_ends_with_its_token_and_after_its_time(
    tasks: TaskQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "0123456789abcdef"
    changed = (
        KNOWN,
        Tokens([Token("Bob", SECRETS["Bob"])]),
        Tokens([Token("Ada", "n" * 32, may_reserve=["*"])]),
    )
    owner = Browser(
        create_api(task_router({"review": tasks}), identify=KNOWN, secret=secret), "Ada"
    )
    await owner.sign_in()
    for tokens, status in zip(changed, (200, 401, 401), strict=True):
        other = Browser(
            create_api(task_router({"review": tasks}), identify=tokens, secret=secret), "Ada"
        )
        other.http.cookies = httpx.Cookies(owner.http.cookies)
        assert (await other.ask("")).status_code == status
    kept, later = httpx.Cookies(owner.http.cookies), time.time() + 7 * 86_400 + 1
    monkeypatch.setattr(time, "time", lambda: later)
    owner.http.cookies = kept
    assert (await owner.do("reservation")).status_code == 401


async def test_token_can_be_sent_with_each_request(
    client: Client, app: ASGIApp, ada: Browser
) -> None:
    await put(client, "a")
    program = Browser(app, "Ada", address="10.0.0.7", host="http://desk.example")
    program.http.headers["Authorization"] = f"Bearer {SECRETS['Ada']}"
    task = await program.reserve()
    assert (await ada.do("finish", answer=1, **held(task))).status_code == 409
    for wrong in ("x" * 32, SECRETS["Ada"][:-1], ada.token, ""):
        ada.http.headers["Authorization"] = f"Bearer {wrong}"
        assert (await ada.do("reservation")).status_code == 401, "its cookie does not help"
    assert (await program.do("finish", answer=1, **held(task))).status_code == 200


async def test_task_queue_that_is_not_theirs_is_refused(client: Client, tasks: TaskQueue) -> None:
    browser = Browser(
        create_api(task_router({"review": tasks, "other": tasks}), identify=KNOWN), "Ada"
    )
    await browser.sign_in()
    headers = {"X-Token": browser.token}
    for path, status in (("review", 200), ("other", 403), ("none", 404)):
        answer = await browser.http.post(f"/tasks/{path}/reservation", json={}, headers=headers)
        assert answer.status_code == status
        assert (await browser.http.get(f"/tasks/{path}")).status_code == status


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
    refused = [vars(each)["event"] for each in caplog.records]
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


async def test_forwarded_request_is_not_from_this_machine(tasks: TaskQueue) -> None:
    app = create_api(task_router({"review": tasks}), identify=Tokens.at_startup("s" * 32))
    browser = Browser(app, "Ada")
    browser.http.headers["X-Forwarded-For"] = "10.0.0.7"
    assert (await browser.sign_in(token="s" * 32)).status_code == 403
    browser.http.headers["Authorization"] = f"Bearer {'s' * 32}"
    assert (await browser.ask("")).status_code == 403


async def test_application_identifies_its_people(client: Client, tasks: TaskQueue) -> None:
    await put(client, "a")
    names: dict[str, str] = {"7": "Ada"}

    async def identify(request: Request) -> Identity | None:
        name = names.get(request.headers.get("x-user", ""))
        return Identity(name, may_reserve=["review"]) if name else None

    app = Starlette(
        routes=[
            Mount(
                "/people",
                create_api(
                    task_router({"review": tasks}), identify=identify, secret="0123456789abcdef"
                ),
            )
        ]
    )
    browser = Browser(app, "Bob", address="10.0.0.7", host="https://desk.example/people")
    assert (await browser.sign_in()).status_code == 401
    browser.http.headers["x-user"] = "7"
    answer = await browser.sign_in()
    assert answer.json()["person"] == "Ada"  # the token in the request does not matter
    assert (
        "Secure" in answer.headers["set-cookie"] and "Path=/people" in answer.headers["set-cookie"]
    )
    assert (await browser.reserve())["jid"] == "a"
    names["7"] = "Eve"  # another person uses the browser now
    assert (await browser.ask("")).status_code == 401
    assert (await browser.http.get("/session")).json()["person"] is None


async def test_every_response_has_security_headers(app: ASGIApp, ada: Browser) -> None:
    for answer in (
        await ada.ask(""),
        await ada.ask("none"),
        await ada.http.get("/openapi.json"),
        await ada.http.put("/session"),
    ):
        assert (
            answer.headers["content-security-policy"]
            == "default-src 'none'; frame-ancestors 'none'"
        )
        assert (answer.headers["x-content-type-options"], answer.headers["cache-control"]) == (
            "nosniff",
            "no-store",
        )
        assert (
            answer.headers["content-type"] == "application/json"
            and "access-control-allow-origin" not in answer.headers
        )
    cookie = (await Browser(app, "Eve").sign_in()).headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "secure" not in cookie


# Malformed requests


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("reservation", {"limit": 0}), ("reservation", {"limit": 86_401}),
        ("reservation", {"limit": "long"}),
        ("reservation", {"colour": 1}), ("reservation", []), ("finish", {}),
        ("finish", {"jid": "a", "fence": 1}),
        ("finish", {"jid": "", "fence": 1, "answer": 1}),
        ("finish", {"jid": "a\nb", "fence": 1, "answer": 1}),
        ("finish", {"jid": "a", "fence": 0, "answer": 1}),
        ("hand-over", {"jid": "a", "fence": 1, "to": "x@y"}),
        ("reject", {"jid": "a", "fence": 1, "reason": ""}),
        ("reject", {"jid": "a", "fence": 1, "reason": "x" * 4001}),
    ],
    ids=str,
)  # fmt: skip
async def test_malformed_body_is_refused(
    client: Client, ada: Browser, verb: str, body: Any
) -> None:
    await put(client, "a")
    await ada.reserve()
    answer = await ada.http.post(
        f"/tasks/review/{verb}", json=body, headers={"X-Token": ada.token, "X-Tab": "1"}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "request") and answer.json()[
        "message"
    ]


async def test_invalid_too_large_or_too_deep_json_is_refused(client: Client, ada: Browser) -> None:
    await put(client, "a")
    task = json.dumps(held(await ada.reserve()))[:-1]
    headers = {"X-Token": ada.token, "X-Tab": "1", "Content-Type": "application/json"}
    for content, status in (
        (b"{", 400), (b"\xff", 400), (b"[" * 100_000, 400), (b'{"limit":NaN}', 400),
        (b" " * (MAX_BODY + 1), 413),
        (f'{task},"answer":"{"x" * (1 << 20)}"}}'.encode(), 422),
        (f'{task},"answer":{"[" * 100_000}{"]" * 100_000}}}'.encode(), 400),
    ):  # fmt: skip
        path = "finish" if b"answer" in content else "reservation"
        assert (
            await ada.http.post(f"/tasks/review/{path}", content=content, headers=headers)
        ).status_code == status, content[:50]
    assert (await ada.ask("reservation")).json()["task"]


async def test_invalid_tab_or_key_is_refused(ada: Browser) -> None:
    assert (await ada.do("reservation", "a b")).status_code == 400
    assert (await ada.do("reservation", "1", "x" * 256)).status_code == 400


@pytest.mark.parametrize("name", ["", "a@b", " ", "x" * 65, "a\tb"])
async def test_invalid_names_of_people_are_refused(tasks: TaskQueue, name: str) -> None:
    app = create_api(
        task_router({"review": tasks}), identify=lambda _: Identity(name, may_reserve=["*"])
    )
    browser = Browser(app, "Ada")
    await browser.sign_in()
    assert (await browser.do("reservation")).status_code == 400
    browser.http.headers["Authorization"] = "Bearer of the application"
    assert (await browser.do("reservation")).status_code == 400


async def test_not_found_is_a_json_response(ada: Browser, client: Client) -> None:
    for path in ("/nothing", "/tasks/none", "/tasks/review/none"):
        answer = await ada.http.get(path)
        assert answer.status_code == 404 and answer.json()["message"]
    assert (await ada.ask("status", jid="none")).json() == {"what": "gone", "by": None}
    assert (await ada.do("finish", jid="none", fence=1, answer=1)).status_code == 404
    assert (await ada.http.put("/session")).status_code == 405


async def test_outage_is_reported(redis_url: str, own_server: Any) -> None:
    async with Client(own_server.url) as client:
        browser = Browser(
            create_api(task_router({"review": TaskQueue(client, "review")}), identify=KNOWN), "Ada"
        )
        await browser.sign_in()
        own_server.kill()
        answer = await browser.do("reservation")
        assert (answer.status_code, answer.json()["code"]) == (503, "redis")


@pytest.mark.parametrize("name", ["", "a/b", "a b", "é"])
def test_task_queue_needs_a_name_for_its_path(tasks: TaskQueue, name: str) -> None:
    with pytest.raises(ValueError, match="part of a path"):
        create_api(task_router({name: tasks}))


def test_weak_secret_is_refused(tasks: TaskQueue) -> None:
    with pytest.raises(ValueError, match="at least 16"):
        create_api(task_router({"review": tasks}), secret="secret")
