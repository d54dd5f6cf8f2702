"""Malformed forms: each gets a response and an entry in the audit log."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import quote_from_bytes

import httpx
import pytest
from pydantic import BaseModel

from aioqless import Client, Job, job
from aioqless.contrib.dashboard import create_app
from aioqless.contrib.dashboard.actions import ACTIONS
from aioqless.contrib.dashboard.generated_commands import DashboardCommands
from tests.conftest import existing_job
from tests.contrib.dashboard.conftest import OPEN
from tests.contrib.dashboard.steps import do, token
from tests.contrib.dashboard.test_access import USERS, client_of

HALF = b"\xed\xa0\x80"  # half of a surrogate pair, in invalid UTF-8
DEEP = b"[" * 5_000
VALUES = {"nul": b"\0", "half": HALF, "long": b"x" * 5_000, "infinite": b"inf", "deep": DEEP}
FIELDS = ["queue", "group", "worker", "option", "value", "data", "tags", "tag", "delay"]
FIELDS += ["priority", "limit", "interval", "cron", "timezone", "then"]


class Number(BaseModel):
    """The data of a job."""

    number: int


@job(klass="Pay")
async def pay(job: Job[Any], amount: int) -> None: ...


@job(klass="Order")
async def order(job: Job[Number]) -> None: ...


async def sent(
    http: httpx.AsyncClient,
    act: str,
    form: list[tuple[str, bytes]],
    kind: str = "application/x-www-form-urlencoded",
) -> int:
    """Return the status of a form's answer, and of the page that it redirects to."""
    body = "&".join(f"{name}={quote_from_bytes(value)}" for name, value in form)
    answer = await http.post(f"/do/{act}", content=body, headers={"Content-Type": kind})
    if answer.status_code == 303:
        answer = await http.get(http.base_url.join(answer.headers["location"]))
    return answer.status_code


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
async def test_malformed_form_gets_a_response_and_an_audit_entry(
    http: httpx.AsyncClient, client: Client, value: bytes
) -> None:
    await client.queue("mail").put("Greet", {"to": "ada"}, jid="a", delay=60)
    await client.queue("mail").recur("Greet", {}, every=3600, offset=3600, jid="r")
    its = ("token", (await token(http)).encode())
    acts = sorted(ACTIONS.keys() - {"config-set", "cancel", "clear", "dismiss"})
    for act in acts:
        jid = b"r" if act.startswith("recurring") else b"a"
        plain = [
            ("jid", jid),
            ("queue", b"mail"),
            ("worker", b"ann"),
            ("group", b"typo"),
            ("how", b"new"),
            ("data", b"{}"),
        ]
        for form in (
            [("jid", jid), *((field, value) for field in FIELDS)],
            [*plain, ("limit", value), ("priority", value)],
        ):
            assert await sent(http, act, [its, *form]) in (200, 404), act
    assert len(
        await DashboardCommands(client.internals.store).audit_log_list(count=1000)
    ) == 2 * len(acts)


async def test_too_deeply_nested_data_and_invalid_numbers_are_refused(
    http: httpx.AsyncClient, client: Client
) -> None:
    await client.queue("mail").put("Greet", {"to": "ada"}, jid="a")
    assert "nested too deeply" in await do(
        http, "put-again", jid="a", how="same", data=DEEP.decode()
    )
    assert "limit must be a number (got &#39;inf&#39;)" in await do(
        http, "worker-subscribe", worker="ann", queue="mail", limit="inf"
    )
    assert (await existing_job(client, "a")).data == {"to": "ada"}


@pytest.mark.parametrize("path", ["worker", "queue", "group", "job", "set", "class"])
async def test_page_of_a_name_that_is_not_utf8_is_shown_or_not_found(
    http: httpx.AsyncClient, path: str
) -> None:
    for name in ("%FF", "%C3%28"):
        shown = await http.get(f"/{path}?{'jid' if path == 'job' else 'name'}={name}")
        assert shown.status_code in (200, 404), (path, name)


async def test_refused_filter_is_not_recorded(http: httpx.AsyncClient, client: Client) -> None:
    await do(http, "select-cancel", filter="password:hunter2", found="1")
    (noted,) = await DashboardCommands(client.internals.store).audit_log_list()
    assert "hunter2" not in str(noted)


async def test_form_of_anybody_is_small(client: Client) -> None:
    async with client_of(create_app(client, identify=USERS)) as http:
        form = {"token": await token(http, "/login"), "secret": "x" * 20_000}
        answer = await http.post("/login", data=form)
        assert answer.status_code == 413 and "larger than 16 KiB" in answer.text


async def test_data_in_a_refused_form_or_a_signal_is_in_no_log(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    jid = await client.queue("desk").put("Refund", {})
    async with client_of(create_app(client, identify=OPEN, handlers=[pay, order])) as http:
        await do(http, "put", klass="Pay", **{"arg-amount": "hunter2"})
        await do(http, "put", klass="Order", data='{"number": "hunter2"}')
        await do(http, "signal", jid=jid, name="approval", data='"hunter2"')
    noted = await DashboardCommands(client.internals.store).audit_log_list()
    assert len(noted) == 3 and "hunter2" not in str(noted)
    assert not [each for each in caplog.records if "hunter2" in str(vars(each))]


async def test_body_other_than_a_form_is_refused(http: httpx.AsyncClient) -> None:
    its = await token(http)
    for kind in ("application/json", "multipart/form-data; boundary=x", "text/plain", ""):
        assert await sent(http, "pause", [("token", its.encode()), ("queue", b"mail")], kind) == 415
    for body, status in (
        (b"\xff\xfe", 400),
        (f"token={its}&queue=%".encode(), 303),
        (b"token=", 403),
        (b"&".join([b"a=b"] * 100), 400),
    ):
        answer = await http.post(
            "/do/pause", content=body, headers={"Content-Type": "application/x-www-form-urlencoded"}
        )
        assert answer.status_code == status, body
