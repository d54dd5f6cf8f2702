"""Sessions and logins: lifetime, removed tokens, proxies and the audit log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette

from aioqless import Client
from aioqless.contrib.dashboard import create_app
from aioqless.contrib.dashboard.generated_commands import DashboardCommands
from aioqless.contrib.http import Role, Token, Tokens
from aioqless.contrib.http.refusal_log import network_of
from tests.contrib.dashboard.conftest import OPEN, TOKEN, entered, served
from tests.contrib.dashboard.steps import token
from tests.contrib.dashboard.test_access import (
    ROLES,
    SECRETS,
    USERS,
    client_of,
    cookie_of,
    log_in,
)
from tests.server import OwnServer

SECRET = "a secret of several processes"


def users(**changed: Token | None) -> Tokens:
    """Return the tokens with changes; None: removed."""
    known = {name: Token(name, SECRETS[name], role) for name, role in ROLES.items()}
    return Tokens(each for each in (known | changed).values() if each)


@asynccontextmanager
async def from_address(app: Starlette, address: str) -> AsyncIterator[httpx.AsyncClient]:
    """Return a browser behind a proxy that says its address."""
    async with (
        served(app) as site,
        httpx.AsyncClient(
            base_url=site,
            trust_env=False,
            timeout=60,
            headers={"Origin": site, "X-Forwarded-For": address},
        ) as http,
    ):
        yield http


def use_cookie(http: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    """Let a browser send the cookie of another one."""
    http.cookies.clear()
    http.cookies.set(cookie_of(http), owner.cookies[cookie_of(owner)])


@pytest.mark.parametrize(
    ("changed", "statuses"),
    [
        ({}, (200, 200)),
        ({"ada": Token("ada", SECRETS["ada"], Role.READ)}, (200, 403)),
        ({"ada": Token("ada", "n" * 32, Role.ADMIN)}, (303, 303)),
        ({"ada": Token("ada", ["n" * 32, SECRETS["ada"]], Role.ADMIN)}, (200, 200)),
        ({"ada": None}, (303, 303)),
        ({"ada": None, "eve": Token("eve", SECRETS["ada"], Role.ADMIN)}, (303, 303)),
    ],
    ids=["same", "role taken away", "new secret", "rotated", "removed", "given to another"],
)
async def test_session_has_the_rights_of_its_token_and_ends_with_it(
    client: Client, changed: dict[str, Token | None], statuses: tuple[int, int]
) -> None:
    apps = [create_app(client, identify=each, secret=SECRET) for each in (USERS, users(**changed))]
    async with client_of(apps[0]) as before, client_of(apps[1]) as restarted:
        await log_in(before, "ada")
        assert (await before.get("/audit-log")).status_code == 200
        use_cookie(restarted, before)
        pages = [await restarted.get(path) for path in ("/queues", "/audit-log")]
        assert tuple(each.status_code for each in pages) == statuses


async def test_logged_in_users_see_an_outage_and_no_one_else_gets_in(
    own_server: OwnServer,
) -> None:
    async with (
        Client(own_server.url) as client,
        served(create_app(client, identify=OPEN)) as site,
        entered(site, headers={"Origin": site}) as http,
    ):
        own_server.kill()
        for path in ("/queues", "/queue?name=mail"):
            answer = await http.get(path)
            assert answer.status_code == 503 and "Redis is unavailable" in answer.text
        async with httpx.AsyncClient(base_url=site, trust_env=False, timeout=60) as stranger:
            assert (await stranger.get("/queues")).status_code == 303
            answer = await stranger.get("/", params={"token": TOKEN[:-1]})
            assert answer.status_code == 403 and str(own_server.port) not in answer.text


async def test_address_in_the_audit_log_is_that_of_the_trusted_proxy(client: Client) -> None:
    for proxies, header, expected in (
        ((), "1.2.3.4", "127.0.0.1"),
        (("127.0.0.1",), "1.2.3.4", "1.2.3.4"),
        (("127.0.0.1",), "10.0.0.1, 1.2.3.4", "1.2.3.4"),
        (("10.0.0.1",), "1.2.3.4", "127.0.0.1"),
    ):
        app = create_app(client, identify=USERS, trusted_proxies=proxies)
        async with from_address(app, header) as http:
            assert (await log_in(http, "ada")).status_code == 303
        (login, *_) = await DashboardCommands(client.internals.store).audit_log_logins()
        assert login["about"] == {"address": expected}, (proxies, header)


async def test_cookie_is_secure_behind_a_trusted_proxy_with_tls(client: Client) -> None:
    app = create_app(client, identify=USERS, trusted_proxies=["127.0.0.1"])
    async with from_address(app, "10.0.0.1") as http:
        assert "Secure" not in (await http.get("/login")).headers["set-cookie"]
        http.cookies.clear()
        answer = await http.get("/login", headers={"X-Forwarded-Proto": "https"})
        assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("2001:db8::1", "2001:db8::/64"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.1"),
        ("", ""),
        ("unix", "unix"),
    ],
)
def test_ipv6_network_of_a_customer_counts_as_one_address(address: str, network: str) -> None:
    assert network_of(address) == network


async def test_audit_log_has_logins_which_never_displace_actions(client: Client) -> None:
    commands = DashboardCommands(client.internals.store)
    await commands.audit_log_add(who="ada", act="pause", about="{}", outcome="done")
    async with client_of(create_app(client, identify=USERS)) as http:
        await log_in(http, "ada", "hunter2 typed into the wrong field")
        await log_in(http, "ada")
        await http.post("/logout", data={"token": await token(http)})
        noted = [
            (each["who"], each["act"], each["outcome"])
            for each in await commands.audit_log_logins()
        ]
        assert noted == [
            ("ada", "log-out", "done"),
            ("ada", "log-in", "done"),
            ("(unknown)", "log-in", "refused"),
        ]
        assert [each["act"] for each in await commands.audit_log_list()] == ["pause"]
        await log_in(http, "ada")
        page = (await http.get("/audit-log?kind=logins")).text
        assert "refused" in page and "127.0.0.1" in page
        assert "hunter2" not in page and "Pause queue" not in page
        assert "Pause queue" in (await http.get("/audit-log")).text
        await http.post("/logout", data={"token": await token(http)})
        await log_in(http, "otto")
        assert (await http.get("/audit-log?kind=logins")).status_code == 403


async def test_guesses_of_a_token_are_recorded_once_a_minute_for_each_address(
    client: Client, stranger: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    async def open_link(token: str, **headers: str) -> int:
        return (await stranger.get("/", params={"token": token}, headers=headers)).status_code

    for secret in ("wrong", TOKEN):  # embedded by a website: no attempt
        assert await open_link(secret, **{"Sec-Fetch-Dest": "image"}) == 303
    assert {await open_link("wrong") for _ in range(20)} == {403}
    commands = DashboardCommands(client.internals.store)
    assert [each["outcome"] for each in await commands.audit_log_logins()] == ["refused"]
    refused = [each for each in caplog.records if vars(each).get("event") == "web.login_refused"]
    assert len(refused) == 1
