"""Sessions and logins: lifetime, rate limits and the audit log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import httpx
import pytest
from argon2 import PasswordHasher
from starlette.applications import Starlette

from aioqless import Client
from aioqless.contrib.dashboard import Access, Role, User, create_app, passwords
from aioqless.contrib.dashboard.generated_commands import DashboardCommands
from aioqless.contrib.http.login_attempts import (
    BY_ADDRESS,
    BY_NAME,
    BY_PAIR,
    MAX_WAITING,
    network_of,
)
from tests.contrib.dashboard.conftest import OPEN, TOKEN, entered, served
from tests.contrib.dashboard.steps import token
from tests.contrib.dashboard.test_access import HASH, PASSWORD, USERS, client_of, cookie_of, log_in
from tests.server import OwnServer

SECRET = "a secret of several processes"
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(
    PASSWORD
)  # for many sign-ins
BEHIND = Access(users=USERS, trusted_proxies=("127.0.0.1",))


@asynccontextmanager
async def from_address(app: Starlette, *addresses: str) -> AsyncIterator[list[httpx.AsyncClient]]:
    """Return browsers behind a trusted proxy, each with its own address."""
    async with served(app) as site, AsyncExitStack() as stack:
        options = {"base_url": site, "trust_env": False, "timeout": 60}
        yield [
            await stack.enter_async_context(
                httpx.AsyncClient(headers={"Origin": site, "X-Forwarded-For": each}, **options)  # type: ignore[arg-type]
            )
            for each in addresses
        ]


async def guess(http: httpx.AsyncClient, name: str, times: int = 1) -> list[int]:
    """Return the statuses of consecutive wrong passwords."""
    return [(await log_in(http, name, "wrong one")).status_code for _ in range(times)]


async def test_new_password_ends_sessions_of_the_old_one(client: Client) -> None:
    changed = {
        **USERS,
        "otto": replace(USERS["otto"], password=passwords.make_hash("another horse")),
    }
    apps = [
        create_app(client, access=Access(users=each), secret=SECRET)
        for each in (USERS, USERS, changed)
    ]
    async with (
        client_of(apps[0]) as first,
        client_of(apps[1]) as restarted,
        client_of(apps[2]) as after,
    ):
        for name, statuses in (("otto", (200, 303)), ("ada", (200, 200))):
            await log_in(first, name)
            for http, status in zip((restarted, after), statuses, strict=True):
                http.cookies.set(cookie_of(http), first.cookies[cookie_of(first)])
                assert (await http.get("/queues")).status_code == status, name


@pytest.mark.parametrize("role", [Role.READ, None], ids=["role taken away", "removed"])
async def test_open_session_has_the_rights_of_the_new_file_of_users(
    client: Client, role: Role | None
) -> None:
    users = {name: each for name, each in USERS.items() if name != "ada"}
    changed = users | ({"ada": replace(USERS["ada"], role=role)} if role else {})
    apps = [
        create_app(client, access=Access(users=each), secret=SECRET) for each in (USERS, changed)
    ]
    async with client_of(apps[0]) as before, client_of(apps[1]) as restarted:
        await log_in(before, "ada")
        assert (await before.get("/audit-log")).status_code == 200
        restarted.cookies.set(cookie_of(restarted), before.cookies[cookie_of(before)])
        statuses = [(await restarted.get(path)).status_code for path in ("/queues", "/audit-log")]
        assert statuses == ([200, 403] if role else [303, 303])


async def test_logout_ends_the_session_in_every_process_and_after_a_restart(
    client: Client,
) -> None:
    apps = [create_app(client, access=Access(users=USERS), secret=SECRET) for _ in range(3)]
    async with client_of(apps[0]) as first, client_of(apps[1]) as second:
        await log_in(first, "otto")
        cookie = first.cookies[cookie_of(first)]
        second.cookies.set(cookie_of(second), cookie)
        assert (await second.get("/queues")).status_code == 200
        await first.post("/logout", data={"token": await token(first)})
        assert (await second.get("/queues")).status_code == 303
        async with client_of(apps[2]) as restarted:
            restarted.cookies.set(cookie_of(restarted), cookie)
            assert (await restarted.get("/queues")).status_code == 303


async def test_rotated_secret_is_valid_until_it_is_dropped(client: Client) -> None:
    new = "another secret, of today"
    secrets = (SECRET, [new, SECRET], [new])
    apps = [create_app(client, access=Access(users=USERS), secret=each) for each in secrets]
    async with (
        client_of(apps[0]) as before,
        client_of(apps[1]) as rotated,
        client_of(apps[2]) as after,
    ):
        await log_in(before, "otto")
        for http, status in ((rotated, 200), (after, 303)):
            http.cookies.set(cookie_of(http), before.cookies[cookie_of(before)])
            assert (await http.get("/queues")).status_code == status
        rotated.cookies.clear()
        await log_in(rotated, "otto")
        after.cookies.clear()
        after.cookies.set(cookie_of(after), rotated.cookies[cookie_of(rotated)])
        assert (await after.get("/queues")).status_code == 200


async def test_session_cannot_be_forged_from_the_content_of_redis(client: Client) -> None:
    async with client_of(create_app(client, access=Access(users=USERS), secret=SECRET)) as http:
        await log_in(http, "otto")
        cookie = http.cookies[cookie_of(http)]
        kept = [key async for key in client.redis.scan_iter(f"{client.namespace}:x:session:*")]
        assert len(kept) == 2  # the session, and the address
        values = b" ".join([*kept, *[await client.redis.get(key) or b"" for key in kept]]).decode()  # type: ignore[list-item]
        assert not [part for part in (cookie, *cookie.split("."), HASH, "otto") if part in values]
        assert all([0 < await client.redis.ttl(key) <= 90 * 86_400 for key in kept])


async def test_logged_in_users_see_an_outage_and_no_one_else_gets_in(
    own_server: OwnServer,
) -> None:
    async with (
        Client(own_server.url) as client,
        served(create_app(client, access=OPEN)) as site,
        entered(site, headers={"Origin": site}) as http,
    ):
        form = {"token": await token(http)}
        own_server.kill()
        for path in ("/queues", "/queue?name=mail"):
            answer = await http.get(path)
            assert answer.status_code == 503 and "Redis is unavailable" in answer.text
        assert (await http.post("/logout", data=form)).status_code == 503
        async with httpx.AsyncClient(base_url=site, trust_env=False, timeout=60) as stranger:
            assert (await stranger.get("/queues")).status_code == 303
            answer = await stranger.get("/", params={"token": TOKEN})
            assert answer.status_code == 503 and str(own_server.port) not in answer.text


@pytest.mark.parametrize(
    "costs", ["m=999999999,t=3,p=1", "m=32768,t=99,p=1", "m=32768,t=3,p=99", "m=x,t=3,p=1", ""]
)
def test_invalid_or_too_expensive_password_hash_is_refused(costs: str) -> None:
    with pytest.raises(ValueError, match="a password's hash must be"):
        User("ada", Role.READ, HASH.replace("m=32768,t=3,p=1", costs))


async def test_failed_logins_of_others_do_not_lock_out_the_owner(client: Client) -> None:
    async with from_address(create_app(client, access=BEHIND), "10.0.0.1", "10.0.0.2") as (
        stranger,
        owner,
    ):
        assert await guess(stranger, "ada", BY_PAIR.amount + 1) == [403] * BY_PAIR.amount + [429]
        assert (await log_in(stranger, "ada")).status_code == 429
        assert (await log_in(owner, "ada")).status_code == 303


@pytest.mark.long
async def test_right_password_from_a_known_address_is_accepted_despite_failed_logins_there(
    client: Client,
) -> None:
    others = [f"user{number}" for number in range(BY_ADDRESS.amount)]
    # cheap ones: all attempts must be made within a minute
    users = {name: User(name, Role.ADMIN, CHEAP) for name in ("ada", *others)}
    app = create_app(client, access=replace(BEHIND, users=users))
    async with from_address(app, "10.0.0.1", "10.0.0.1") as (owner, neighbour):
        assert (await log_in(owner, "ada")).status_code == 303
        for name in others:
            await guess(neighbour, name)
        assert await guess(neighbour, "nobody") == [429]
        assert await guess(neighbour, "ada", BY_PAIR.amount + 1) == [403] * (BY_PAIR.amount + 1)
        assert (await log_in(owner, "ada")).status_code == 303


@pytest.mark.long
async def test_known_address_is_shared_by_processes_until_the_password_changes(
    client: Client,
) -> None:
    changed = replace(
        BEHIND, users={"ada": User("ada", Role.ADMIN, passwords.make_hash("another horse"))}
    )
    async with from_address(create_app(client, access=BEHIND), "10.0.0.1") as (owner,):
        assert (await log_in(owner, "ada")).status_code == 303
    async with from_address(create_app(client, access=BEHIND), "10.0.0.1") as (owner,):
        assert await guess(owner, "ada", BY_PAIR.amount + 1) == [403] * (BY_PAIR.amount + 1)
    async with from_address(create_app(client, access=changed), "10.0.0.1") as (owner,):
        assert await guess(owner, "ada", BY_PAIR.amount + 1) == [403] * BY_PAIR.amount + [429]


async def test_failed_logins_from_many_addresses_are_limited_by_name_except_known_addresses(
    client: Client,
) -> None:
    addresses = [f"10.0.{number}.1" for number in range(-(-BY_NAME.amount // BY_PAIR.amount) + 1)]
    access = replace(BEHIND, users={"ada": User("ada", Role.ADMIN, CHEAP)})
    async with from_address(create_app(client, access=access), "10.9.9.9", *addresses) as (
        owner,
        *strangers,
    ):
        assert (await log_in(owner, "ada")).status_code == 303
        for stranger in strangers[:-1]:
            await guess(stranger, "ada", BY_PAIR.amount)
        assert await guess(strangers[-1], "ada") == [429]
        assert (await log_in(owner, "ada")).status_code == 303


@pytest.mark.long
async def test_flood_of_invented_names_uses_bounded_memory_and_blocks_no_login(
    client: Client,
) -> None:
    addresses = [f"10.1.{number}.1" for number in range(60)]
    async with from_address(create_app(client, access=BEHIND), "10.0.0.1", *addresses) as (
        owner,
        *strangers,
    ):
        assert (await log_in(owner, "ada")).status_code == 303
        forms = [
            {"token": await token(each, "/login"), "password": "wrong one"} for each in strangers
        ]
        own = {
            "token": await token(owner, "/login"),
            "name": "ada",
            "password": PASSWORD,
            "to": "/",
        }
        flood = [
            asyncio.create_task(stranger.post("/login", data={**form, "name": f"nobody{number}"}))
            for number in range(4)
            for stranger, form in zip(strangers, forms, strict=True)
        ]
        began = time.monotonic()
        assert (await owner.post("/login", data=own)).status_code == 303
        waited = time.monotonic() - began
        answers = [each.status_code for each in await asyncio.gather(*flood)]
        took = time.monotonic() - began
        assert set(answers) == {403, 429} and answers.count(429) > len(answers) - 10 * MAX_WAITING
        assert waited < max(5.0, took)


@pytest.mark.parametrize(
    ("header", "status"),
    [("1.2.3.4", 303), ("10.0.0.1, 1.2.3.4", 303), ("1.2.3.4, 10.0.0.1", 429)],
    ids=["another", "forged", "same"],
)
async def test_client_address_is_that_of_the_trusted_proxy(
    client: Client, header: str, status: int
) -> None:
    async with from_address(create_app(client, access=BEHIND), "10.0.0.1") as (stranger,):
        await guess(stranger, "ada", BY_PAIR.amount)
        stranger.headers["X-Forwarded-For"] = header
        assert (await log_in(stranger, "ada")).status_code == status


async def test_forwarded_address_is_ignored_without_a_trusted_proxy(client: Client) -> None:
    async with from_address(
        create_app(client, access=Access(users=USERS)), "10.0.0.1", "10.0.0.2"
    ) as (first, second):
        await guess(first, "ada", BY_PAIR.amount)
        assert await guess(second, "ada") == [429]


async def test_cookie_is_secure_behind_a_trusted_proxy_with_tls(client: Client) -> None:
    async with from_address(create_app(client, access=BEHIND), "10.0.0.1") as (http,):
        assert "Secure" not in (await http.get("/login")).headers["set-cookie"]
        http.cookies.clear()
        assert (
            "Secure"
            in (await http.get("/login", headers={"X-Forwarded-Proto": "https"})).headers[
                "set-cookie"
            ]
        )


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


async def test_audit_log_has_every_login_and_attempts_never_displace_actions(
    client: Client,
) -> None:
    await DashboardCommands(client.internals.store).audit_log_add(
        who="ada", act="pause", about="{}", outcome="done"
    )
    async with client_of(create_app(client, access=Access(users=USERS))) as http:
        await guess(http, "ada")
        await guess(http, "hunter2 typed into the wrong field")
        await log_in(http, "ada")
        await http.post("/logout", data={"token": await token(http)})
        noted = [
            (each["who"], each["act"], each["outcome"])
            for each in await DashboardCommands(client.internals.store).audit_log_logins()
        ]
        assert noted == [
            ("ada", "log-out", "done"),
            ("ada", "log-in", "done"),
            ("(unknown)", "log-in", "refused"),
            ("ada", "log-in", "refused"),
        ]
        assert [
            each["act"] for each in await DashboardCommands(client.internals.store).audit_log_list()
        ] == ["pause"]
        await log_in(http, "ada")
        page = (await http.get("/audit-log?kind=logins")).text
        assert (
            "refused" in page
            and "127.0.0.1" in page
            and "hunter2" not in page
            and "Pause queue" not in page
        )
        assert "Pause queue" in (await http.get("/audit-log")).text
        await http.post("/logout", data={"token": await token(http)})
        await log_in(http, "otto")
        assert (await http.get("/audit-log?kind=logins")).status_code == 403


async def test_guesses_of_the_startup_token_by_link_are_limited_and_recorded(
    client: Client, site: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with httpx.AsyncClient(
        base_url=site, headers={"Origin": site}, trust_env=False, timeout=60
    ) as stranger:

        async def open_link(token: str, **headers: str) -> int:
            return (await stranger.get("/", params={"token": token}, headers=headers)).status_code

        for _ in range(BY_PAIR.amount + 1):  # embedded by a website: no attempt
            assert await open_link("wrong", **{"Sec-Fetch-Dest": "image"}) == 303
        statuses = [await open_link("wrong") for _ in range(BY_PAIR.amount + 20)]
        assert statuses == [403] * BY_PAIR.amount + [429] * 20
        assert await open_link(TOKEN) == 429
        form = {"token": await token(stranger, "/login"), "password": TOKEN}
        assert (await stranger.post("/login", data=form)).status_code == 429
    logged = await DashboardCommands(client.internals.store).audit_log_logins()
    assert [(each["who"], each["outcome"]) for each in logged] == [
        ("local", "refused")
    ] * BY_PAIR.amount
    refused = [each for each in caplog.records if vars(each).get("event") == "web.login_refused"]
    assert len(refused) == BY_PAIR.amount + 1
