"""Tokens: who may put, see and change which jobs."""

from __future__ import annotations

import time
from typing import Any

import pytest
from starlette.types import ASGIApp

from aioqless import Client
from aioqless.contrib.http import Identity, Role, Token, Tokens, create_api
from aioqless.contrib.http.tokens import MAX_JIDS, read_tokens
from aioqless.contrib.http_api import job_router
from tests.contrib.http_api import jobs
from tests.contrib.http_api.conftest import (
    KNOWN,
    OTHER,
    SECRET,
    SHOP,
    TOKENS,
    Program,
    refusal,
)

ISSUER = TOKENS[0]


def list_requests(jid: str) -> list[tuple[str, str, Any]]:
    """Return a request of each operation on a job."""
    return [
        ("GET", f"/jobs/{jid}", None), ("GET", f"/klasses/shop.greet/results/{jid}", None),
        ("GET", f"/jobs/{jid}/output", None), ("POST", f"/jobs/{jid}/retry", None),
        ("POST", f"/jobs/{jid}/signals/answer", {"value": 1}), ("DELETE", f"/jobs/{jid}", None),
        ("POST", "/tokens", {"jids": [jid]}),
    ]  # fmt: skip


async def test_each_of_several_secrets_is_valid(app: ASGIApp) -> None:
    for secret in (SHOP, "n" * 32):
        assert (await Program(app, secret).get("/openapi.json")).status_code == 200


async def test_job_of_another_token_is_not_found(
    client: Client, shop: Program, other: Program
) -> None:
    """Whose name begins with that of the other."""
    ours = (await shop.put("shop.greet", {"name": "Ada"}, tags=["x"]))["jid"]
    theirs = (await other.put("shop.greet", {"name": "Ada"}, tags=["x"]))["jid"]
    of_python = await client.put(jobs.greet.data(name="Ada"), jid="shopping-1", tags=["x"])
    for stranger, jid in ((other, ours), (shop, theirs), (shop, of_python), (shop, "shop-none")):
        answers = [
            await stranger.request(method, path, json=body)
            for method, path, body in list_requests(jid)
        ]
        assert {refusal(each) for each in answers} == {(404, "gone")}
        assert len({each.text for each in answers}) == 1
    for program, jid in ((shop, ours), (other, theirs)):
        for query in ({"tag": "x"}, {"klass": "shop.greet"}):
            assert {*await program.find(**query)} == {jid}
    assert (await client.queue("default").counts()).waiting == 3


async def test_readable_klass_is_seen_and_not_changed(client: Client, other: Program) -> None:
    jid = await client.put("shop.total", {"order": {"number": 7}})
    for path in (f"/jobs/{jid}", f"/klasses/shop.total/results/{jid}", f"/jobs/{jid}/output"):
        assert (await other.get(path)).status_code == 200
    assert {*await other.find(klass="shop.total")} == {jid}
    for method, path, body in list_requests(jid)[3:6]:
        assert refusal(await other.request(method, path, json=body)) == (404, "gone")
    assert await client.jobs.get(jid)


async def test_klass_that_the_token_may_not_put_is_refused(client: Client, other: Program) -> None:
    for path, body in (("/klasses/back.greet", {}), ("/klasses/back.greet/many", [{}])):
        assert refusal(await other.post(path, json=body)) == (403, "klass")
    assert await client.queues() == []


# Tokens of browsers


async def test_browser_sees_the_jobs_that_it_put_and_those_that_its_token_names(
    app: ASGIApp, shop: Program
) -> None:
    named = (await shop.put("shop.greet", {"name": "Ada"}))["jid"]
    unnamed = (await shop.put("shop.greet", {"name": "Ada"}))["jid"]
    issued = await shop.post(
        "/tokens", json={"may_put": ["shop.greet"], "jids": [named], "seconds": 60}
    )
    first = Program(app, issued.json()["token"])
    second = Program(app, ISSUER.issue(SECRET, may_put=["shop.greet"], jids=[named]))
    own = (await first.put("shop.greet", {"name": "Eve"}, "k"))["jid"]
    assert own != (await second.put("shop.greet", {"name": "Bob"}, "k"))["jid"]
    assert own.startswith("shop.") and (await shop.get(f"/jobs/{own}")).status_code == 200
    for browser in (first, second):
        assert (await browser.get(f"/jobs/{named}")).status_code == 200
        assert refusal(await browser.delete(f"/jobs/{named}")) == (404, "gone")
        assert refusal(await browser.get(f"/jobs/{unnamed}")) == (404, "gone")
    assert refusal(await second.get(f"/jobs/{own}")) == (404, "gone")
    assert (await first.delete(f"/jobs/{own}")).json() == {"state": "canceled"}


async def test_browser_may_do_no_more_than_its_issuer(app: ASGIApp, shop: Program) -> None:
    browser = Program(app, ISSUER.issue(SECRET, may_put=["*"]))
    assert (await browser.put("back.greet", {}))["jid"]
    narrow = Program(app, TOKENS[1].issue(SECRET, may_put=["*"]))
    assert refusal(await narrow.ask_to_put("back.greet", {})) == (403, "klass")
    nothing = Program(app, ISSUER.issue(SECRET))
    assert refusal(await nothing.ask_to_put("shop.greet", {"name": "Ada"})) == (403, "klass")
    assert refusal(await browser.post("/tokens", json={"may_put": ["*"]})) == (403, "klass")
    of_reader = Program(app, TOKENS[1].issue(SECRET))
    assert refusal(await of_reader.get("/jobs", params={"tag": "x"})) == (403, "klass")


@pytest.mark.parametrize("seconds", [0, -1, 86_401, float("nan"), float("inf")])
def test_lifetime_of_a_browsers_token_is_bounded(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds"):
        ISSUER.issue(SECRET, seconds=seconds)


async def test_expired_or_forged_token_of_a_browser_is_refused(
    client: Client, app: ASGIApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = ISSUER.issue(SECRET, may_put=["*"], seconds=60)
    name, payload, signature = token.split(".")
    of_other = TOKENS[1].issue(SECRET, may_put=["*"]).split(".")
    rotated = Token("shop", "z" * 32, may_put=["shop.*"]).issue(SECRET, may_put=["*"])
    of_other_server = ISSUER.issue("another secret of a server", may_put=["*"])
    by_hash = ISSUER.issue(ISSUER.hashes[0], may_put=["*"])
    forged = [
        f"sho.{payload}.{signature}", f"shop.{of_other[1]}.{of_other[2]}", rotated,
        of_other_server, by_hash, ISSUER.hashes[0],
        f"{name}.{payload}", f"{name}.{payload}.", f"{name}.{payload[:-2]}.{signature}",
        f"{name}.{payload}.{signature[:-2]}", f"{name}..{signature}",
        f"{name}.{payload}.{signature}.x",
    ]  # fmt: skip
    for each in forged:
        assert refusal(await Program(app, each).get("/openapi.json")) == (401, "token"), each
    assert (await Program(app, token).get("/openapi.json")).status_code == 200
    signed_before = Token("shop", ["z" * 32, SHOP], may_put=["shop.*"])
    after = create_api(
        job_router(client, jobs),
        identify=Tokens([signed_before]),
        secret=["a new secret of it", SECRET],
    )
    assert (await Program(after, token).get("/openapi.json")).status_code == 200
    removed = create_api(job_router(client, jobs), identify=Tokens(TOKENS[1:]), secret=SECRET)
    assert refusal(await Program(removed, token).get("/openapi.json")) == (401, "token")
    later = time.time() + 61
    monkeypatch.setattr(time, "time", lambda: later)
    assert refusal(await Program(app, token).get("/openapi.json")) == (401, "token")


async def test_token_names_a_bounded_number_of_jobs(shop: Program) -> None:
    with pytest.raises(ValueError, match="at most 100"):
        ISSUER.issue(SECRET, jids=["a"] * (MAX_JIDS + 1))
    answer = await shop.post("/tokens", json={"jids": ["a"] * (MAX_JIDS + 1)})
    assert refusal(answer) == (400, "request")


# Other ways to say who sent a request


async def test_application_identifies_senders(client: Client) -> None:
    known = {
        "shop": Identity("shop", may_put=["shop.*"]),
        "eve": Identity("eve"),
        "ada@example.com": Identity("ada@example.com", may_put=["*"]),
    }
    app = create_api(job_router(client, jobs), identify=lambda it: known.get(it.headers["x-user"]))
    shop, eve, ada, stranger = (
        Program(app, "", **{"X-User": name}) for name in ("shop", "eve", "ada@example.com", "bob")
    )
    jid = (await shop.put("shop.greet", {"name": "Ada"}))["jid"]
    assert jid.startswith("shop-")
    assert refusal(await eve.ask_to_put("shop.greet", {"name": "Ada"})) == (403, "klass")
    assert refusal(await eve.get(f"/jobs/{jid}")) == (404, "gone")
    assert refusal(await ada.ask_to_put("shop.greet", {"name": "Ada"})) == (403, "name")
    assert refusal(await stranger.get(f"/jobs/{jid}")) == (401, "token")
    assert refusal(await shop.post("/tokens", json={})) == (403, "sender")


# Configuration


@pytest.mark.parametrize(
    ("name", "secret", "why"),
    [
        ("a-b", SHOP, "letters"), ("a.b", SHOP, "letters"), ("", SHOP, "letters"),
        ("shop", "short", "at least 32"), ("shop", [], "at least 32"),
        ("shop", [SHOP, "short"], "at least 32"),
    ],
)  # fmt: skip
def test_unusable_token_is_refused(name: str, secret: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Token(name, secret)


def test_tokens_must_differ() -> None:
    for tokens, why in (
        ([], "must not be empty"),
        ([Token("a", SHOP), Token("a", OTHER)], "two tokens have the name a"),
        ([Token("a", SHOP), Token("b", SHOP)], "two tokens have the same secret"),
    ):
        with pytest.raises(ValueError, match=why):
            Tokens(tokens)
    with pytest.raises(ValueError, match="must be a list"):
        Token("a", SHOP, may_put="shop.greet")


def test_secret_is_not_kept() -> None:
    assert SHOP not in repr(ISSUER) and SHOP not in str(vars(ISSUER))


def test_tokens_are_read_from_toml() -> None:
    hashed = Token("shop", SHOP).hashes[0]
    text = f'[shop]\nsecret = "{hashed}"\nmay_put = ["shop.*"]\n'
    assert read_tokens(text, "file") == [Token("shop", SHOP, Role.NONE, ["shop.*"], [], [])]
    for wrong in (
        "", "shop", '[shop]\nsecret = "x"', f"{text}color = 1", "[shop]", f"{text}role = 'boss'",
        text.replace(hashed, SHOP), text.replace(hashed, hashed[:-1]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"^file"):
            read_tokens(wrong, "file")


# Pages of other origins


async def test_only_named_origins_may_send_requests(client: Client, app: ASGIApp) -> None:
    ours = create_api(job_router(client, jobs), identify=KNOWN, origins=["https://shop.example"])
    asked = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    for api, origin, allowed in (
        (ours, "https://shop.example", True), (ours, "https://evil.example", False),
        (app, "https://shop.example", False),
    ):  # fmt: skip
        page = Program(api, SHOP, Origin=origin)
        answer = await page.options("/klasses/shop.greet", headers=asked)
        assert (answer.status_code == 200) is allowed
        answer = await page.get("/openapi.json")
        assert ("access-control-allow-origin" in answer.headers) is allowed
        assert "access-control-allow-credentials" not in answer.headers
