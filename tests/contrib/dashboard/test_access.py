"""Authentication, roles, CSRF protection and security headers."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote, urlencode, urljoin, urlsplit

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, request_response

from aioqless import Client
from aioqless.contrib.dashboard import create_app
from aioqless.contrib.dashboard.actions import ACTIONS
from aioqless.contrib.dashboard.pages import PAGES
from aioqless.contrib.encryption import Encryption
from aioqless.contrib.http import Identity, Role, Token, Tokens
from tests.conftest import existing_job
from tests.contrib.dashboard.conftest import ENTER, OPEN, TOKEN, served
from tests.contrib.dashboard.steps import do, token

ROLES = {"rita": Role.READ, "otto": Role.OPERATE, "ada": Role.ADMIN, "shop": Role.NONE}
SECRETS = {name: f"the long secret of the token {name}" for name in ROLES}
USERS = Tokens([Token(name, SECRETS[name], role) for name, role in ROLES.items()])


@asynccontextmanager
async def client_of(app: Starlette, under: str = "") -> AsyncIterator[httpx.AsyncClient]:
    async with (
        served(app) as address,
        httpx.AsyncClient(
            base_url=address + under, headers={"Origin": address}, trust_env=False, timeout=60
        ) as http,
    ):
        if hasattr(app.state, "dashboard"):
            tokens = app.state.dashboard.identification.tokens
            if tokens and tokens.local:
                await http.get("/", params={"token": TOKEN})
        yield http


def cookie_of(http: httpx.AsyncClient) -> str:
    return f"aioqless-{http.base_url.port}"


async def log_in(http: httpx.AsyncClient, name: str, secret: str | None = None) -> httpx.Response:
    form = {
        "token": await token(http, "/login"),
        "secret": SECRETS[name] if secret is None else secret,
        "to": "/queues",
    }
    return await http.post("/login", data=form)


async def test_every_response_has_security_headers(http: httpx.AsyncClient) -> None:
    for path in ("/", "/static/page.js", "/nowhere", "/live?at=/nowhere"):
        headers = (await http.get(path)).headers
        policy = headers["content-security-policy"]
        assert (
            policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
            and "unsafe" not in policy
        )
        assert (headers["x-frame-options"], headers["x-content-type-options"]) == (
            "DENY",
            "nosniff",
        )
        assert "camera=()" in headers["permissions-policy"]
    html = (await http.get("/")).text
    assert not re.search(r"<script>|<style|\sstyle=|\son\w+=", html)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "localhost.evil.example"},
        {"Host": "["},
        {"X-Forwarded-For": "1.2.3.4"},
        {"Forwarded": "for=1.2.3.4"},
    ],
    ids=str,
)
async def test_only_loopback_requests_are_accepted_with_a_startup_link(
    http: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    assert (await http.get("/", headers=headers)).status_code == 403
    assert (await http.get("/")).status_code == 200


async def test_only_the_startup_link_logs_in_on_this_machine(
    stranger: httpx.AsyncClient, client: Client
) -> None:
    """A proxy that adds no headers looks the same: loopback address and host name."""
    for path in PAGES:
        answer = await stranger.get(path)
        assert answer.status_code == 303 and answer.headers["location"].startswith("/login"), path
    assert (await stranger.get("/live?at=/")).status_code == 401
    form = {"token": await token(stranger, "/login"), "queue": "mail", "back": "/"}
    assert (await stranger.post("/do/pause", data=form)).status_code == 401
    assert (await stranger.get("/", params={"token": ""})).status_code == 303
    for wrong in ("wrong", TOKEN[:-1], TOKEN + "x", "é"):
        answer = await stranger.get("/", params={"token": wrong})
        assert answer.status_code == 403 and "The token is wrong." in answer.text
    assert (await stranger.head("/", params={"token": TOKEN})).status_code == 401
    assert not (await client.queue("mail").counts()).paused
    answer = await stranger.get("/queue", params={"name": "mail", "token": TOKEN})
    assert (answer.status_code, answer.headers["location"]) == (303, "/queue?name=mail")
    assert (await stranger.get("/queues")).status_code == 200
    assert (await stranger.get("/", params={"token": "wrong"})).headers["location"] == "/", (
        "who is in stays in"
    )


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example/",
        "//evil.example",
        "/%2Fevil.example/",
        "/%5Cevil.example/",
        "/%09/x.example",
    ],
)
@pytest.mark.parametrize("under", ["", "/jobs"])
async def test_no_redirect_leaves_the_dashboard(client: Client, path: str, under: str) -> None:
    dashboard = create_app(client, identify=OPEN)
    app = Starlette(routes=[Mount(under, dashboard)]) if under else dashboard
    async with served(app) as site:
        options: dict[str, Any] = {"base_url": site, "headers": {"Origin": site}, "timeout": 60}
        async with httpx.AsyncClient(trust_env=False, **options) as http:

            async def follow(target: str) -> str:
                """Return the absolute address that a browser would go to."""
                request = http.build_request("GET", f"{site}{under}/")
                request.url = httpx.URL(f"{site}/").copy_with(raw_path=f"{under}{target}".encode())
                answer = await http.send(request)
                assert answer.status_code in (303, 307, 404), answer.text
                return urljoin(site, answer.headers.get("location", "/").replace("\\", "/"))

            link = urlencode({"token": TOKEN})
            targets = [path, f"{path}?{link}", f"{path}?token=anything", f"{path}queues/"]
            targets += [f"/login?{urlencode({'to': path, 'token': TOKEN})}"]
            for target in [*targets, *targets]:
                assert urlsplit(await follow(target)).netloc == urlsplit(site).netloc, target
            await http.get(f"{under}/", params={"token": TOKEN})
            form = {"token": await token(http, f"{under}/queues"), "queue": "mail"}
            for field in ("back", "then"):
                answer = await http.post(f"{under}/do/pause", data={**form, field: unquote(path)})
                assert answer.headers["location"] == f"{under}/"


async def test_startup_token_can_be_pasted_and_logout_ends_the_session(
    stranger: httpx.AsyncClient,
) -> None:
    form = {"token": await token(stranger, "/login"), "to": "/queues"}
    assert "paste its token" in (await stranger.get("/login")).text
    assert (await stranger.post("/login", data=form | {"secret": "wrong"})).status_code == 403
    answer = await stranger.post("/login", data=form | {"secret": TOKEN})
    assert (answer.status_code, answer.headers["location"]) == (303, "/queues")
    kept = dict(stranger.cookies)
    await stranger.post("/logout", data={"token": await token(stranger)})
    stranger.cookies.update(kept)
    assert (await stranger.get("/queues")).status_code == 303


async def test_startup_link_is_generated_and_logged_without_identify(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    apps = [create_app(client) for _ in range(2)]
    create_app(client, identify=OPEN)
    create_app(client, identify=USERS)
    logs = [vars(record) for record in caplog.records]
    assert [log["event"] for log in logs] == ["web.token_created"] * 2
    links = [log["link"] for log in logs]
    assert len(set(links)) == 2 and all(len(each) > 40 for each in links)
    for app, link in zip(apps, links, strict=True):
        async with client_of(app) as http:
            assert (await http.get(link)).status_code == 303
            assert (await http.get("/queues")).status_code == 200


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"trusted_proxies": ["10.0.0.300"]}, "10.0.0.300"),
        ({"trusted_proxies": ["*"]}, "must be an address or a network"),
        ({"secret": "short"}, "at least 16"),
    ],
    ids=["no address", "everybody", "short"],
)
def test_insecure_settings_are_refused(client: Client, given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        create_app(client, identify=OPEN, **given)
    with pytest.raises(ValueError, match="at least 32"):
        Tokens.at_startup("short")


async def test_change_from_another_origin_or_without_a_token_is_refused(
    http: httpx.AsyncClient, client: Client
) -> None:
    right = {"token": await token(http), "back": "/", "queue": "mail"}
    for headers, form, status in (
        ({"Origin": "http://evil.example"}, right, 403),
        ({"Origin": ""}, right, 403),
        ({"Origin": "http://["}, right, 403),
        ({"Sec-Fetch-Site": "cross-site"}, right, 403),
        ({}, right | {"token": "0" * 64}, 403),
        ({}, right | {"token": "é"}, 403),
        ({}, {"queue": "mail"}, 403),
        ({"Content-Type": "text/plain"}, right, 415),
        ({"Cookie": f"{cookie_of(http)}=forged.x"}, right, 401),
    ):
        assert (await http.post("/do/pause", data=form, headers=headers)).status_code == status, (
            headers,
            form,
        )
    assert (
        await http.post(
            "/do/pause",
            content=b"a=b&" * 5_000_000,
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        )
    ).status_code == 413
    assert not (await client.queue("mail").counts()).paused
    assert (await http.post("/do/pause", data=right)).status_code == 303
    assert (await client.queue("mail").counts()).paused


async def test_form_can_be_submitted_after_its_body_was_read(client: Client) -> None:
    """As error reporters do that attach the request."""
    app = create_app(client, identify=OPEN)
    route = next(
        each for each in app.routes if isinstance(each, Route) and each.path == "/do/{action}"
    )
    read: list[bytes] = []

    async def reads_first(request: Request) -> Response:
        read.append(await request.body())
        answer: Response = await route.endpoint(request)
        return answer

    route.app = request_response(reads_first)
    async with client_of(app) as http:
        assert (await do(http, "pause", queue="mail")).startswith("done")
    assert b"queue=mail" in read[0]


async def test_get_changes_nothing(http: httpx.AsyncClient, client: Client) -> None:
    jid = await client.queue("mail").put("Greet", {})

    async def contents() -> dict[bytes, bytes | None]:
        keys = [key async for key in client.redis.scan_iter(f"{client.namespace}:*")]
        return {
            key: await client.redis.dump(key) for key in keys if b":x:request:" not in key
        }  # responses that are cached

    before = await contents()
    for path in PAGES:
        await http.get(f"{path}?name=mail&jid={jid}&q=mail")
    for act in ACTIONS:
        assert (await http.get(f"/do/{act}?jid={jid}&queue=mail")).status_code == 405
    assert await contents() == before


async def test_anonymous_user_is_sent_to_the_login(client: Client) -> None:
    async with client_of(create_app(client, identify=USERS)) as http:
        for path in PAGES:
            answer = await http.get(path)
            assert answer.status_code == 303 and answer.headers["location"].startswith("/login")
        assert (await http.get("/live?at=/")).status_code == 401
        for wrong in ("wrong one", "", SECRETS["ada"][:-1], "é", "x" * 5000):
            assert (await log_in(http, "ada", wrong)).status_code == 403
        stored = USERS.find(SECRETS["ada"])
        assert stored and (await log_in(http, "ada", stored[0].hashes[0])).status_code == 403
        link = await http.get("/", params={"token": SECRETS["ada"]})
        assert link.headers["location"].startswith("/login"), "only the start-up token is in a link"
        answer = await log_in(http, "ada")
        assert (answer.status_code, answer.headers["location"]) == (303, "/queues")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=Lax" in cookie
        assert "ada" in (await http.get("/queues")).text


async def test_anonymous_user_gets_static_files_and_the_login_only(
    client: Client,
) -> None:
    async with client_of(create_app(client, identify=USERS)) as http:
        missing = await http.get("/static/nowhere")
        assert (missing.status_code, missing.text) == (404, "Not Found\n")
        assert (
            (await http.head("/login")).status_code
            == (await http.head("/static/page.js")).status_code
            == 200
        )
        assert (await http.head("/queues")).status_code == 401


@pytest.mark.parametrize(
    ("name", "may"), [("rita", Role.READ), ("otto", Role.OPERATE), ("ada", Role.ADMIN)]
)
async def test_each_action_requires_its_role(client: Client, name: str, may: Role) -> None:
    async with client_of(create_app(client, identify=USERS)) as http:
        await log_in(http, name)
        mine = {"token": await token(http, "/queues"), "back": "/queues"}
        assert [name for name, act in ACTIONS.items() if act.role == Role.READ] == ["dismiss"]
        for each, act in ACTIONS.items():
            await http.post(f"/do/{each}", data=mine)
            told = (await http.get("/queues")).text
            assert ("This action requires the" in told) == (act.role > may), each
        assert (await http.get("/audit-log")).status_code == (200 if may is Role.ADMIN else 403)


async def test_token_without_a_role_does_not_see_the_dashboard(client: Client) -> None:
    async with client_of(create_app(client, identify=USERS)) as http:
        refused = await log_in(http, "shop")
        assert refused.status_code == 403 and "has no role" in refused.text
        assert (await http.get("/queues")).status_code == 303
        form = {"token": await token(http, "/login"), "queue": "mail"}
        assert (await http.post("/do/pause", data=form)).status_code == 401


async def test_data_requires_its_role_and_secrets_are_always_hidden(client: Client) -> None:
    jid = await client.queue("mail").put(
        "Greet", {"name": "Ada Lovelace", "smtp": [{"Password": "hunter2"}], "n": 12345678901234567}
    )
    async with client_of(create_app(client, identify=USERS)) as http:
        await log_in(http, "rita")
        for path in (f"/job?jid={jid}", "/queue?name=mail", "/jobs?filter=Greet"):
            assert "Ada Lovelace" not in (await http.get(path)).text
        assert "you may not see the data" not in await do(http, "put-again", jid=jid, data="{}")
    async with client_of(create_app(client, identify=USERS)) as http:
        await log_in(http, "otto")
        page = (await http.get(f"/job?jid={jid}")).text
        assert "Ada Lovelace" in page and "hunter2" not in page and "12345678901234567" in page
        assert "hunter2" not in (await http.get("/queue?name=mail")).text
        edited = '{"name": "Bob", "smtp": [{"Password": "•••••"}], "n": 12345678901234567}'
        assert (await do(http, "put-again", jid=jid, how="same", data=edited)).startswith("done")
    assert (await existing_job(client, jid)).data == {
        "name": "Bob",
        "smtp": [{"Password": "hunter2"}],
        "n": 12345678901234567,
    }


async def test_unedited_data_is_kept_byte_for_byte(http: httpx.AsyncClient, client: Client) -> None:
    import html

    import msgspec

    text = '{"b":1.50,  "a":[12345678901234567890, 1e3], "é":"\\u00e9"}'
    jid = await client.queue("mail").put("Greet", msgspec.Raw(text.encode()))
    page = (await http.get(f"/job?jid={jid}")).text
    shown = html.unescape(re.search(r"<textarea[^>]*>\n?(.*?)</textarea>", page, re.DOTALL)[1])  # type: ignore[index]
    await do(http, "put-again", jid=jid, how="same", data=shown.replace("\n", "\r\n"))
    assert (await existing_job(client, jid)).raw_data == text


async def test_concurrent_change_of_data_is_not_overwritten(
    http: httpx.AsyncClient, client: Client
) -> None:
    jid = await client.queue("mail").put("Greet", {"name": "Ada"})
    (job,) = await client.queue("mail").pop()
    await job.fail("no such word", group="typo")
    page = (await http.get(f"/job?jid={jid}")).text
    was = re.search(r'name="was" value="([^"]+)"', page)
    assert was
    await client.jobs.retry(jid, data={"name": "Bob"})
    (job,) = await client.queue("mail").pop()
    await job.fail("no such word", group="typo")
    said = await do(http, "put-again", jid=jid, how="same", data='{"name": "Eve"}', was=was[1])
    assert said.startswith("refused") and "its data has changed since you opened the page" in said
    read = await client.jobs.get(jid)
    assert read and (read.state, read.data) == ("failed", {"name": "Bob"})


async def test_dashboards_on_two_ports_of_a_host_keep_separate_sessions(
    client: Client,
) -> None:
    async with (
        client_of(create_app(client, identify=USERS)) as http,
        served(create_app(client, identify=OPEN)) as other,
    ):
        await log_in(http, "otto")
        assert (
            await http.get(other + ENTER)
        ).status_code == 303  # as a browser does, which ignores the port of a host
        assert (await http.get("/queues")).status_code == 200, "one would have to log in again"


async def test_encrypted_data_is_shown_and_changed_with_the_key(
    client: Client, redis_url: str
) -> None:
    async with Client(
        redis_url, namespace=client.namespace, codec=Encryption(Encryption.new_key())
    ) as keeper:
        jid = await keeper.queue("mail").put("Greet", {"name": "Ada Lovelace"})
        async with client_of(create_app(client, identify=OPEN)) as http:
            page = (await http.get(f"/job?jid={jid}")).text
            assert "this client has no key" in page and "Ada Lovelace" not in page
            assert "no key" in await do(
                http, "put-again", jid=jid, how="same", data='{"name": "Bob Smith"}'
            )
        async with client_of(create_app(keeper, identify=OPEN)) as http:
            assert "Ada Lovelace" in (await http.get(f"/job?jid={jid}")).text
            assert (
                await do(http, "put-again", jid=jid, how="same", data='{"name": "Bob Smith"}')
            ).startswith("done")
        job = await keeper.jobs.get(jid)
        assert job and job.data == {"name": "Bob Smith"} and "Bob Smith" not in job.raw_data


async def test_mounted_dashboard_uses_the_authentication_of_its_app(client: Client) -> None:
    def who(request: Request) -> Identity | None:
        return {"boss": Identity("boss", Role.ADMIN), "clerk": Identity("clerk", Role.READ)}.get(
            request.headers.get("x-user", "")
        )

    await client.queue("mail").put("Greet", {})
    app = Starlette(routes=[Mount("/jobs", create_app(client, identify=who))])
    async with client_of(app, "/jobs") as http:
        assert (await http.get("/")).status_code == 403
        http.headers["x-user"] = "boss"
        page = (await http.get("/queues")).text
        assert 'href="/jobs/static/page.css"' in page and 'href="/jobs/queue?name=mail"' in page
        assert (
            await do(http, "pause", queue="mail", back="/queue?name=mail")
            == "done: Queue mail paused. Running jobs finish."
        )
        assert "boss" in (await http.get("/audit-log")).text
        http.headers["x-user"] = "clerk"
        assert ">Resume<" not in (await http.get("/queue?name=mail")).text


async def test_redirects_stay_on_the_same_host(http: httpx.AsyncClient) -> None:
    for to in ("https://evil.example", "\r\nX: y", "/\r\nX: y"):
        answer = await http.post(
            "/do/pause", data={"token": await token(http), "back": to, "queue": "mail"}
        )
        assert answer.headers["location"] == "/"
    odd = f"token={await token(http)}&queue=mail&back=/%FF"
    answer = await http.post(
        "/do/pause", content=odd, headers={"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert answer.headers["location"] == "/"
