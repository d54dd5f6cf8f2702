"""Users that a reverse proxy names in a header."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from aioqless import Client
from aioqless.contrib.dashboard import create_app
from aioqless.contrib.http import ProxyHeader, Role, create_api
from aioqless.contrib.human_tasks import TaskQueue
from aioqless.contrib.human_tasks.api import task_router

ROLES = {"ada": Role.ADMIN, "off": Role.NONE, "*": Role.READ}
PROXY = ProxyHeader(header="X-User", peers=["10.0.0.1", "10.8.0.0/16", "fd00::/8"], roles=ROLES)
UNIX = ProxyHeader(header="X-User", peers=["unix"], roles=ROLES)


async def ask(
    app: ASGIApp, peer: str | None, headers: list[tuple[str, str]], path: str = "/queues"
) -> httpx.Response:
    """Send a request as a server hands it on; without a peer, by a Unix socket."""

    async def from_socket(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "client": None} if peer is None else scope, receive, send)

    transport = httpx.ASGITransport(from_socket, client=(peer or "", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://jobs.example") as http:
        return await http.get(path, headers=headers)


@pytest.mark.parametrize("peer", ["10.0.0.1", "10.8.7.6", "::ffff:10.0.0.1", "fd00::1"])
async def test_header_of_a_configured_proxy_counts(client: Client, peer: str) -> None:
    app = create_app(client, identify=PROXY)
    for name, path, status in (
        ("ada", "/audit-log", 200), ("eve", "/audit-log", 403), ("eve", "/queues", 200),
        ("off", "/queues", 403), ("*", "/queues", 403), ("", "/queues", 403),
    ):  # fmt: skip
        assert (await ask(app, peer, [("X-User", name)], path)).status_code == status, (name, path)
    assert (await ask(app, peer, [])).status_code == 403
    page = (await ask(app, peer, [("X-User", "ada")])).text
    assert "Sign out" not in page and "/login" not in page


@pytest.mark.parametrize("peer", ["10.0.0.2", "127.0.0.1", "::1", "proxy", None])
@pytest.mark.parametrize(
    "more",
    [[], [("X-Forwarded-For", "10.0.0.1")], [("Forwarded", "for=10.0.0.1")]],
    ids=["alone", "forwarded for", "forwarded"],
)
async def test_forged_header_is_refused(
    client: Client, peer: str | None, more: list[tuple[str, str]]
) -> None:
    for proxies in ([], ["127.0.0.1"]):
        app = create_app(client, identify=PROXY, trusted_proxies=proxies)
        answer = await ask(app, peer, [("X-User", "ada"), *more])
        assert answer.status_code == 403 and "counts only from a proxy" in answer.text
    tasks = create_api(task_router({"review": TaskQueue(client, "review")}), identify=PROXY)
    answer = await ask(tasks, peer, [("X-User", "ada"), *more], "/session")
    assert (answer.status_code, answer.json()["code"]) == (403, "sender")


async def test_address_of_the_proxy_is_that_of_the_connection(client: Client) -> None:
    """X-Forwarded-For names the client, and does not hide the proxy."""
    app = create_app(client, identify=PROXY, trusted_proxies=["10.0.0.1"])
    headers = [("X-User", "ada"), ("X-Forwarded-For", "192.0.2.7")]
    assert (await ask(app, "10.0.0.1", headers)).status_code == 200
    assert (await ask(app, "192.0.2.7", headers)).status_code == 403


@pytest.mark.parametrize(
    "values",
    [["ada", "ada"], ["eve", "ada"], ["ada", ""], ["eve, ada"], ["ada eve"], ["a" * 65], ["a\x7f"]],
    ids=str,
)
async def test_header_that_is_sent_twice_or_has_no_name_is_refused(
    client: Client, values: list[str]
) -> None:
    app = create_app(client, identify=PROXY)
    answer = await ask(app, "10.0.0.1", [("X-User", each) for each in values])
    assert answer.status_code == 403 and "The header X-User must be" in answer.text


async def test_unix_socket_is_a_peer_if_it_is_configured(client: Client) -> None:
    app = create_app(client, identify=UNIX, trusted_proxies=["unix"])
    headers = [("X-User", "ada"), ("X-Forwarded-Proto", "https")]
    answer = await ask(app, None, headers)
    assert answer.status_code == 200 and "Secure" in answer.headers["set-cookie"]
    for peer in ("10.0.0.1", "127.0.0.1", "unix.example", "unix"):  # as a header may say
        assert (await ask(app, peer, headers)).status_code == 403
    app = create_app(client, identify=UNIX, trusted_proxies=["127.0.0.1"])
    forged = [("X-User", "ada"), ("X-Forwarded-For", "unix")]
    assert (await ask(app, "127.0.0.1", forged)).status_code == 403


@pytest.mark.parametrize("peers", [[], ["*"], ["10.0.0.300"], ["proxy.example"]])
def test_peers_must_be_addresses(peers: list[str]) -> None:
    with pytest.raises(ValueError, match=r"addresses of the proxies|must be an address"):
        ProxyHeader(header="X-User", peers=peers, roles=ROLES)
    with pytest.raises(TypeError, match="must be a list"):
        ProxyHeader(header="X-User", peers="10.0.0.1", roles=ROLES)
