"""What holds for every operation of the HTTP API, whichever router it is of."""

from __future__ import annotations

from typing import Any, NamedTuple

import httpx
import pytest
from starlette.requests import Request
from starlette.types import ASGIApp

from aioqless import Client
from aioqless.contrib.http import Identity, Sessions, create_api
from aioqless.contrib.http.api import COOKIE
from aioqless.contrib.http.json_api import MAX_BODY
from tests.contrib.http.conftest import EVE, KNOWN, SECRET, SHOP, routers

SITE = "http://desk.example"
JSON = {"Content-Type": "application/json"}


class Known(NamedTuple):
    """An operation, and values for its path."""

    method: str
    path: str
    has_body: bool

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


VALUES = {
    "{jid}": "shop-1", "{name}": "nightly", "{signal}": "approval", "{queue}": "review",
}  # fmt: skip


def list_operations() -> list[Known]:
    """Return all operations of both routers, and the document that describes them."""
    found = [Known("GET", "/openapi.json", has_body=False)]
    for router in routers(Client("redis://127.0.0.1:1")):
        for each in router.operations:
            path = each.path
            for name, value in VALUES.items():
                path = path.replace(name, value)
            found.append(Known(each.method, path, each.body is not None))
    return found


WRONG = [
    "", "Bearer", f"Bearer {SHOP[:-1]}", f"Bearer {SHOP}s", f"Bearer {SHOP.upper()}", SHOP,
    f"Basic {SHOP}", "Bearer shop.", "Bearer shop.x.y", "Bearer none.x.y", "Bearer \u00e9",
]  # fmt: skip
OPERATIONS = list_operations()
CHANGES = [each for each in OPERATIONS if each.method != "GET"]


class Browser(httpx.AsyncClient):
    """A browser on another machine."""

    def __init__(self, api: ASGIApp) -> None:
        transport = httpx.ASGITransport(api, client=("10.0.0.7", 50_000))
        super().__init__(transport=transport, base_url=SITE)

    async def sign_in(self, secret: str = SHOP) -> dict[str, str]:
        """Return the headers of a change."""
        answer = await self.post("/session", json={"token": secret})
        assert answer.status_code == 200, answer.text
        return {"X-Token": answer.json()["token"]} | JSON

    async def send_to(self, operation: Known, **options: Any) -> tuple[int, str]:
        """Return the status and the code of the answer."""
        answer = await self.request(operation.method, operation.path, **options)
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers
        assert answer.headers["content-type"] == "application/json"
        found = answer.json()
        return answer.status_code, found.get("code", "") if answer.status_code >= 400 else ""


async def contents(client: Client) -> set[bytes]:
    return {key async for key in client.redis.scan_iter(f"{client.namespace}:*")}


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
async def test_sender_without_a_token_is_refused_before_the_body_is_read(
    client: Client, api: ASGIApp, operation: Known
) -> None:
    browser = Browser(api)
    for header in WRONG:
        headers = {b"Authorization": header.encode(), b"Content-Type": b"application/json"}
        sent = await browser.send_to(operation, content=b"{", headers=headers)
        assert sent == (401, "token"), header
    answer = await browser.request(operation.method, operation.path, content=b"{", headers=JSON)
    assert answer.headers["www-authenticate"] == "Bearer"
    assert (await browser.get("/health")).status_code == 200
    assert await contents(client) == set()


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
async def test_cookie_that_is_over_or_forged_is_refused(
    client: Client, api: ASGIApp, operation: Known
) -> None:
    browser = Browser(api)
    headers = await browser.sign_in()
    ((name, value),) = browser.cookies.items()
    signed_out = Browser(api)
    token = await signed_out.sign_in()
    ((_, ended),) = signed_out.cookies.items()
    assert (await signed_out.delete("/session", headers=token)).status_code == 200
    for forged in (ended, value[:-2], f"x{value}", value.rpartition(".")[0], ".", ""):
        browser.cookies.clear()
        browser.cookies.set(name, forged)
        assert await browser.send_to(operation, content=b"{", headers=headers) == (401, "token")
    browser.cookies.clear()
    of_eve = Browser(api)
    await of_eve.sign_in(EVE)
    if operation in CHANGES:  # with the cookie of one and the CSRF token of another
        sent = await of_eve.send_to(operation, content=b"{", headers=headers)
        assert sent == (403, "csrf")
    assert await contents(client) == set()


@pytest.mark.parametrize("operation", CHANGES, ids=str)
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://["},
        {"Origin": "https://desk.example.evil"}, {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)  # fmt: skip
async def test_page_of_another_origin_changes_nothing(
    client: Client, api: ASGIApp, operation: Known, headers: dict[str, str]
) -> None:
    browser = Browser(api)
    own = await browser.sign_in()
    refused = await browser.send_to(operation, content=b"{}", headers=own | headers)
    assert refused == (403, "origin")
    for_all = create_api(*routers(client), identify=lambda _: Identity("shop", may_put=["*"]))
    ambient = await Browser(for_all).send_to(operation, content=b"{}", headers=JSON | headers)
    assert ambient == (403, "origin"), "a user whom the application knows by its own cookie"
    assert await contents(client) == set()


@pytest.mark.parametrize("operation", CHANGES, ids=str)
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_form_changes_nothing(
    client: Client, api: ASGIApp, operation: Known, kind: str
) -> None:
    browser = Browser(api)
    own = await browser.sign_in()
    headers = {"X-Token": own["X-Token"], "Content-Type": kind}
    if operation.has_body:
        sent = await browser.send_to(operation, content=b"{}", headers=headers)
        assert sent == (415, "type")
    del headers["X-Token"]
    assert await browser.send_to(operation, content=b"{}", headers=headers) == (403, "csrf")
    for_all = create_api(*routers(client), identify=lambda _: Identity("shop", may_put=["*"]))
    assert await Browser(for_all).send_to(operation, content=b"{}", headers=headers) == (
        415,
        "type",
    )
    assert await contents(client) == set()


@pytest.mark.parametrize("operation", [each for each in CHANGES if each.has_body], ids=str)
async def test_malformed_body_is_refused(client: Client, api: ASGIApp, operation: Known) -> None:
    browser = Browser(api)
    headers = {"Authorization": f"Bearer {SHOP}"} | JSON
    for content, status in (
        (b"{", 400), (b"\xff", 400), (b"[" * 100_000, 400), (b'{"a":NaN}', 400),
        (b" " * (MAX_BODY + 1), 413),
    ):  # fmt: skip
        sent = await browser.send_to(operation, content=content, headers=headers)
        assert sent[0] == status, content[:20]
    assert await contents(client) == set()


async def test_not_found_is_a_json_response(api: ASGIApp) -> None:
    browser = Browser(api)
    for path in ("/nothing", "/jobs/x/none", "/tasks", "/tasks/review/none", "/jobs/"):
        assert await browser.send_to(Known("GET", path, has_body=False)) == (404, "path")
    answer = await browser.put("/session")
    assert (answer.status_code, answer.json()["code"]) == (405, "path")
    assert "access-control-allow-origin" not in answer.headers


async def test_session_is_of_its_person_as_long_as_the_application_says_so(
    client: Client,
) -> None:
    known: dict[str, Identity | None] = {"who": None}
    app = create_api(*routers(client), identify=lambda _: known["who"], secret=SECRET)
    browser = Browser(app)
    assert (await browser.post("/session", json={})).status_code == 401
    known["who"] = Identity("ada", may_reserve=["*"])
    headers = JSON | {"X-Token": (await browser.post("/session", json={})).json()["token"]}
    assert (await browser.get("/session")).json()["person"] == "ada"
    assert (await browser.post("/tasks/review/reservation", json={}, headers=headers)).is_success
    known["who"] = Identity("eve", may_reserve=["*"])  # who uses the browser now
    assert (await browser.get("/session")).json() == {"person": None, "token": None}
    answer = await browser.post("/tasks/review/reservation", json={}, headers=headers)
    assert answer.status_code == 401
    browser.cookies.clear()  # the page of the session still has its token
    answer = await browser.post("/tasks/review/reservation", json={}, headers=headers)
    assert answer.status_code == 401
    assert KNOWN.find(SHOP)


async def test_cookie_of_the_dashboard_is_none_of_the_api(api: ASGIApp) -> None:
    found = KNOWN.find(SHOP)
    assert found
    for name, status in (("aioqless", 401), (COOKIE, 200)):  # whose secret is the same
        sessions = Sessions(name, 60, "Lax", SECRET)
        request = Request({"type": "http", "headers": [], "server": ("x", 80), "path": "/"})
        header = sessions.cookie(sessions.begin("shop", found[1]), request)
        browser = Browser(api)
        browser.cookies.set(COOKIE, header.partition("=")[2].partition(";")[0])
        assert (await browser.get("/tasks/review")).status_code == status


async def test_api_without_routers_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to serve"):
        create_api(identify=KNOWN)
