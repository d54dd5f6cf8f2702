"""Jobs over HTTP: put, repeated, read, changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pytest
from starlette.types import ASGIApp

from aioqless import Client, Job, NewJob, Unique, Worker, job
from aioqless.contrib.encryption import Encryption
from aioqless.contrib.http import Token, Tokens, create_api
from aioqless.contrib.http.api import MAX_WAITS, MAX_WAITS_OF_BROWSER, MAX_WAITS_OF_TOKEN
from aioqless.contrib.http.uvicorn_server import TimedProtocol
from aioqless.contrib.http_api import job_router
from aioqless.contrib.partitions import PartitionedClient
from tests.conftest import Until, existing_job
from tests.contrib.http_api import jobs
from tests.contrib.http_api.conftest import KNOWN, SECRET, SHOP, TOKENS, Program, refusal
from tests.server import OwnServer

# Put


async def test_job_is_put_with_the_options_of_its_handler_and_its_query(
    client: Client, shop: Program
) -> None:
    put = await shop.put(
        "shop.greet", {"name": "Ada"}, priority=-2, delay=60, expires_in=90, tags=["a", "b"]
    )
    found = await client.jobs.get(put["jid"])
    assert found and put["jid"].startswith("shop-") and not put["existing"]
    assert (found.klass, found.data, found.priority, found.tags, found.state) == (
        "shop.greet", {"name": "Ada"}, -2, ["a", "b"], "scheduled",
    )  # fmt: skip
    assert found.expiry


@pytest.mark.parametrize(
    ("klass", "data", "named"),
    [
        ("shop.greet", {}, "name"), ("shop.greet", {"name": 7}, "$.name"),
        ("shop.greet", {"name": "Ada", "nmae": "Bob"}, "nmae"),
        ("shop.total", {"order": {"number": 1, "lines": [{"name": "tea", "count": 0}]}}, "count"),
        ("shop.whole", {"number": "one"}, "$.number"), ("back.greet", False, "false"),
        ("shop.greet", {"name": "x" * (1 << 20)}, "1,048,576"),
    ],
    ids=str,
)  # fmt: skip
async def test_data_that_the_handler_does_not_take_is_refused(
    client: Client, shop: Program, klass: str, data: Any, named: str
) -> None:
    for path, body in ((f"/klasses/{klass}", data), (f"/klasses/{klass}/many", [data])):
        answer = await shop.post(path, json=body)
        assert refusal(answer) == (422, "data") and named in answer.json()["message"]
    assert await client.queues() == []


async def test_many_jobs_are_put_in_order_or_none(client: Client, shop: Program) -> None:
    data = [{"name": str(number)} for number in range(1000)]
    put = (await shop.post("/klasses/shop.greet/many", json=data)).json()
    assert len(put["jids"]) == 1000 and not put["existing"]
    found = await client.jobs.multiget(*put["jids"])
    assert [each.data for each in found] == data
    for refused in ([], [*data, {"name": "one more"}], [{"name": "Ada"}, {"name": 7}]):
        assert (await shop.post("/klasses/shop.greet/many", json=refused)).status_code in (400, 422)
    assert (await client.queue("default").counts()).waiting == 1000


async def test_taken_unique_key_returns_its_job(client: Client, shop: Program) -> None:
    jid = await client.put(jobs.once.data(name="Ada"))
    for key in (None, "k"):
        assert await shop.put("shop.once", {"name": "Ada"}, key) == {"jid": jid, "existing": True}
    answer = await shop.post("/klasses/shop.once/many", json=[{"name": "Bob"}, {"name": "Ada"}])
    assert refusal(answer) == (409, "state") and jid in answer.json()["message"]
    assert (await client.queue("default").counts()).waiting == 1


async def test_full_queue_is_answered_with_429(client: Client, shop: Program) -> None:
    await client.config.set("default-max-length", 1)
    await shop.put("shop.greet", {"name": "Ada"})
    answer = await shop.ask_to_put("shop.greet", {"name": "Bob"})
    assert refusal(answer) == (429, "full") and answer.headers["retry-after"] == "1"


# Idempotency keys


async def test_repeated_key_puts_one_job(client: Client, shop: Program) -> None:
    answers = await asyncio.gather(
        *(shop.put("shop.greet", {"name": "Ada", "times": 2}, "order 7"[:5]) for _ in range(50))
    )
    assert len({each["jid"] for each in answers}) == 1
    assert sum(not each["existing"] for each in answers) == 1
    assert (await client.queue("default").counts()).waiting == 1
    headers = {"Idempotency-Key": "order", "Content-Type": "application/json"}
    reordered = await shop.post(
        "/klasses/shop.greet", content=b'{"times": 2,  "name":"Ada"}', headers=headers
    )
    assert reordered.json() == {"jid": answers[0]["jid"], "existing": True}


async def test_repeated_key_puts_many_jobs_once(client: Client, shop: Program) -> None:
    async def put() -> Any:
        headers = {"Idempotency-Key": "k"}
        data = [{"name": "Ada"}, {"name": "Bob"}]
        return (await shop.post("/klasses/shop.greet/many", json=data, headers=headers)).json()

    answers = await asyncio.gather(*(put() for _ in range(20)))
    assert len({tuple(each["jids"]) for each in answers}) == 1
    assert sum(not each["existing"] for each in answers) == 1
    assert (await client.queue("default").counts()).waiting == 2


@pytest.mark.parametrize(
    ("klass", "data", "query"),
    [
        ("shop.greet", {"name": "Bob"}, {}), ("shop.once", {"name": "Ada"}, {}),
        ("shop.greet", {"name": "Ada"}, {"delay": 1}),
        ("shop.greet", {"name": "Ada", "times": 1}, {}),
    ],
    ids=["data", "klass", "options", "a default"],
)  # fmt: skip
async def test_key_with_another_body_is_refused(
    client: Client, shop: Program, klass: str, data: Any, query: Any
) -> None:
    await shop.put("shop.greet", {"name": "Ada"}, "k")
    assert refusal(await shop.ask_to_put(klass, data, "k", **query)) == (422, "key")
    headers = {"Idempotency-Key": "k"}
    path = "/klasses/shop.greet/many"
    await shop.post(path, json=[{"name": "Ada"}], headers=headers)
    assert refusal(await shop.post(path, json=[{"name": "Bob"}], headers=headers)) == (422, "key")
    assert (await client.queue("default").counts()).waiting == 2


async def test_key_is_known_though_the_job_has_changed_and_ended(
    client: Client, shop: Program
) -> None:
    @job(klass="shop.greet")
    async def greet(job: Any) -> None:
        job.data["seen"] = True

    put = await shop.put("shop.greet", {"name": "Ada"}, "k")
    found = await existing_job(client, put["jid"])
    await found.set_priority(7)
    async with Worker(client, [greet]):
        await found.wait(30)
    assert found.data == {"name": "Ada", "seen": True}
    assert await shop.put("shop.greet", {"name": "Ada"}, "k") == {**put, "existing": True}
    assert refusal(await shop.delete(f"/jobs/{put['jid']}")) == (409, "state")


async def test_keys_of_two_tokens_are_apart(shop: Program, other: Program) -> None:
    first = await shop.put("shop.greet", {"name": "Ada"}, "k")
    second = await other.put("shop.greet", {"name": "Bob"}, "k")
    assert first["jid"] != second["jid"] and not second["existing"]


async def test_key_is_compared_beside_a_hook_that_adds_context(redis_url: str) -> None:
    def add(new: NewJob) -> NewJob:
        return new.with_options(context={**(new.options.get("context") or {}), "tenant": "acme"})

    async with Client(redis_url, namespace="hook", on_put=[add]) as client:
        shop = Program(create_api(job_router(client, jobs), identify=KNOWN), SHOP)
        put = await shop.put("shop.greet", {"name": "Ada"}, "k")
        assert await shop.put("shop.greet", {"name": "Ada"}, "k") == {**put, "existing": True}
        assert refusal(await shop.ask_to_put("shop.greet", {"name": "Bob"}, "k")) == (422, "key")


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256, "a\tb"])
async def test_malformed_key_is_refused(shop: Program, key: str) -> None:
    headers = {b"Idempotency-Key": key.encode()}
    answer = await shop.post("/klasses/shop.greet", json={"name": "Ada"}, headers=headers)
    assert refusal(answer) == (400, "request")


async def test_two_keys_are_refused(shop: Program) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    answer = await shop.post("/klasses/shop.greet", json={"name": "Ada"}, headers=headers)
    assert refusal(answer) == (400, "request")


# Results


async def test_result_is_awaited(shop: Program, worker: Worker) -> None:
    put = await shop.put("shop.total", {"order": {"number": 7, "lines": [{"name": "tea"}]}})
    path = f"/klasses/shop.total/results/{put['jid']}"
    assert (await shop.get(path, params={"wait": 30})).json() == {
        "state": "complete", "result": {"number": 7, "count": 1},
    }  # fmt: skip
    wrong = await shop.get(path.replace("total", "greet"))
    assert refusal(wrong) == (404, "gone")
    for bad in ("61", "-1", "nan", "inf", "1e999", "x", ""):
        assert refusal(await shop.get(path, params={"wait": bad})) == (400, "request")
    assert refusal(await shop.get(path, params={"color": "red"})) == (400, "request")
    assert refusal(await shop.get(f"{path}?wait=1&wait=2")) == (400, "request")


async def test_wait_ends_with_the_state_so_far(shop: Program) -> None:
    put = await shop.put("shop.greet", {"name": "Ada"})
    answer = await shop.get(f"/klasses/shop.greet/results/{put['jid']}", params={"wait": 0.01})
    assert answer.json() == {"state": "waiting"}


async def test_complete_job_without_a_kept_result_has_none(shop: Program, worker: Worker) -> None:
    put = await shop.put("shop.whole", {"number": 7})
    answer = await shop.get(f"/klasses/shop.whole/results/{put['jid']}", params={"wait": 30})
    assert answer.json() == {"state": "complete"}


async def test_failure_is_told_without_its_traceback(shop: Program, worker: Worker) -> None:
    put = await shop.put("back.greet", ["x"])
    answer = await shop.get(f"/klasses/back.greet/results/{put['jid']}", params={"wait": 30})
    failure = {"group": "default-RuntimeError", "message": "RuntimeError: no ['x']"}
    assert answer.json() == {"state": "failed", "failure": failure}
    assert (await shop.get(f"/jobs/{put['jid']}")).json()["failure"] == failure
    assert (await shop.post(f"/jobs/{put['jid']}/retry")).json() == {"state": "waiting"}


async def test_progress_is_shown(client: Client, shop: Program, until: Until) -> None:
    put = await shop.put("shop.slow", {})
    (popped,) = await client.queue("default").pop()
    popped.progress(0.5, "half")

    async def seen() -> Any:
        return (await shop.get(f"/jobs/{put['jid']}")).json().get("progress")

    progress = await until(seen)
    assert (progress["share"], progress["message"]) == (0.5, "half")


async def test_canceled_job_ends_the_wait(client: Client, shop: Program) -> None:
    put = await shop.put("shop.slow", {})
    path = f"/klasses/shop.slow/results/{put['jid']}"
    waiting = asyncio.create_task(shop.get(path, params={"wait": 60}))
    await asyncio.sleep(0)
    assert (await shop.delete(f"/jobs/{put['jid']}")).json() == {"state": "canceled"}
    assert refusal(await waiting) == (404, "gone")
    assert refusal(await shop.delete(f"/jobs/{put['jid']}")) == (404, "gone")


async def wait_at_once(program: Program, jid: str, count: int, until: Until) -> list[Any]:
    """Send requests that wait for a result; returns them when they do."""
    path, before = f"/klasses/shop.slow/results/{jid}", len(asyncio.all_tasks())
    waits = [asyncio.create_task(program.get(path, params={"wait": 60})) for _ in range(count)]
    await until(lambda: asyncio.sleep(0, len(asyncio.all_tasks()) > before + 2 * count))
    return waits


async def test_waits_of_a_token_are_limited_and_those_of_all(
    client: Client, app: ASGIApp, shop: Program, other: Program, until: Until
) -> None:
    jid = (await shop.put("shop.slow", {}))["jid"]
    path = f"/klasses/shop.slow/results/{jid}"
    browsers = [Program(app, TOKENS[0].issue(SECRET, jids=[jid])) for _ in range(2)]
    waits = await wait_at_once(browsers[0], jid, MAX_WAITS_OF_BROWSER, until)
    assert refusal(await browsers[0].get(path, params={"wait": 60})) == (429, "waits")
    answer = await browsers[1].get(path, params={"wait": 0.01})
    assert answer.status_code == 200

    waits += await wait_at_once(shop, jid, MAX_WAITS_OF_TOKEN, until)
    answer = await shop.get(path, params={"wait": 60})
    assert refusal(answer) == (429, "waits") and answer.headers["retry-after"]
    assert (await shop.get(path)).status_code == 200

    own = (await other.put("shop.slow", {}))["jid"]
    assert MAX_WAITS <= TimedProtocol.MAX_CONNECTIONS / 2
    waits += await wait_at_once(other, own, MAX_WAITS - len(waits), until)
    for program in (other, browsers[1]):
        answer = await program.get(f"/klasses/shop.slow/results/{own}", params={"wait": 60})
        assert refusal(answer) == (429, "waits") and answer.headers["retry-after"]
    assert (await other.get("/health")).status_code == 200

    await client.jobs.cancel(jid, own)
    assert {(await each).status_code for each in waits} == {404}
    again = await shop.put("shop.slow", {})
    answer = await shop.get(f"/klasses/shop.slow/results/{again['jid']}", params={"wait": 0.01})
    assert answer.status_code == 200


async def test_disconnected_client_waits_no_longer(app: ASGIApp, shop: Program) -> None:
    put = await shop.put("shop.slow", {})
    scope = {
        "type": "http", "method": "GET", "path": f"/klasses/shop.slow/results/{put['jid']}",
        "query_string": b"wait=60", "headers": [(b"authorization", f"Bearer {SHOP}".encode())],
    }  # fmt: skip
    events = iter([{"type": "http.request"}, {"type": "http.disconnect"}])

    async def receive() -> Mapping[str, Any]:
        return next(events)

    async def send(_message: Any) -> None: ...

    before = asyncio.all_tasks()
    await asyncio.wait_for(app(scope, receive, send), 30)  # type: ignore[arg-type]
    assert not [
        each for each in asyncio.all_tasks() - before if "wait_for_disconnect" in repr(each)
    ]


# Signals, output, sets, lists


async def test_signal_and_output_reach_the_browser_and_the_job(
    shop: Program, worker: Worker
) -> None:
    put = await shop.put("shop.ask", {"question": "ready?"})
    path = f"/jobs/{put['jid']}"
    page = (await shop.get(f"{path}/output", params={"wait": 30})).json()
    assert page["items"] == [{"kind": "value", "value": "ready?"}] and not page["ended"]
    sent = await shop.post(f"{path}/signals/answer", json={"value": "yes"})
    assert sent.status_code == 200 and sent.json()["state"]
    assert refusal(await shop.post(f"{path}/signals/answer", json={"value": "no"})) == (
        409,
        "state",
    )
    seen: list[Any] = []
    while not page["ended"]:
        query = {"wait": 30, "after": page["after"]}
        page = (await shop.get(f"{path}/output", params=query)).json()
        seen += page["items"]
    assert {"kind": "value", "value": "yes"} in seen
    result = await shop.get(f"/klasses/shop.ask/results/{put['jid']}", params={"wait": 30})
    assert result.json()["result"] == "yes"


async def test_jobs_of_a_set_are_followed_and_canceled(client: Client, shop: Program) -> None:
    await shop.put("shop.greet", {"name": "Ada"}, set="import-7")
    path = "/klasses/shop.greet/many"
    await shop.post(path, json=[{"name": "Bob"}, {"name": "Eve"}], params={"set": "import-7"})
    status = (await shop.get("/sets/import-7")).json()
    assert (status["name"], status["added"], status["open"]) == ("import-7", 3, 3)
    assert (await shop.post("/sets/import-7/close")).json()["closed"]
    late = await shop.ask_to_put("shop.greet", {"name": "Ada"}, set="import-7")
    assert refusal(late) == (409, "state")
    assert (await shop.post("/sets/import-7/retry")).json()["open"] == 3
    assert (await shop.post("/sets/import-7/cancel")).json()["canceled"] == 3
    assert [each.name for each in await client.job_sets()] == ["shop-import-7"]
    assert refusal(await shop.get("/sets/import-8")) == (404, "gone")


async def test_repeated_key_finds_the_member_of_a_set(shop: Program) -> None:
    put = [await shop.put("shop.greet", {"name": "Ada"}, "k", set="one") for _ in range(2)]
    assert [each["existing"] for each in put] == [False, True]
    for query in ({}, {"set": "two"}):
        answer = await shop.ask_to_put("shop.greet", {"name": "Ada"}, "k", **query)
        assert refusal(answer) in ((422, "key"), (409, "state"))
    path, headers = "/klasses/shop.greet/many", {"Idempotency-Key": "m"}
    many = [
        (
            await shop.post(path, json=[{"name": "Ada"}], params={"set": "one"}, headers=headers)
        ).json()
        for _ in range(2)
    ]
    assert [each["existing"] for each in many] == [False, True]
    assert (await shop.get("/sets/one")).json()["added"] == 2


async def test_sets_of_two_tokens_are_apart(shop: Program, other: Program) -> None:
    await shop.put("shop.greet", {"name": "Ada"}, set="one")
    for answer in (await other.get("/sets/one"), await other.post("/sets/one/cancel")):
        assert refusal(answer) == (404, "gone")
    assert (await shop.get("/sets/one")).json()["open"] == 1


async def test_jobs_are_found_by_klass_tag_and_state(client: Client, shop: Program) -> None:
    jids = [(await shop.put("shop.greet", {"name": "A"}, tags=["x"]))["jid"] for _ in range(150)]
    delayed = (await shop.put("shop.greet", {"name": "A"}, delay=60, tags=["x"]))["jid"]
    await client.put(jobs.greet.data(name="A"), tags=["x"])  # of another program

    assert {*await shop.find(tag="x")} == {*jids, delayed}
    assert set(await shop.find(klass="shop.greet")) == {*jids, delayed}
    assert await shop.find(klass="shop.greet", tag="x", state="scheduled") == [delayed]
    assert await shop.find(klass="shop.total", tag="x") == await shop.find(klass="shop.total") == []
    for query in ({}, {"tag": "x", "cursor": "-1"}, {"tag": "x", "state": "none"}, {"tag": ""}):
        assert refusal(await shop.get("/jobs", params=query)) == (400, "request")


# Malformed requests, outages, what can't be served


async def test_half_of_a_surrogate_pair_is_named_as_the_reason(shop: Program) -> None:
    body = b'{"name": "\\ud800"}'
    headers = {"Content-Type": "application/json"}
    answer = await shop.post("/klasses/shop.greet", content=body, headers=headers)
    assert answer.status_code == 400
    assert "half of a surrogate pair" in answer.json()["message"]


async def test_null_as_data_is_refused_with_the_missing_field(shop: Program) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await shop.post("/klasses/shop.greet", content=b"null", headers=headers)
    assert refusal(answer) == (422, "data")
    message = answer.json()["message"]
    assert "missing required field `name`" in message and "handler.data" not in message


@pytest.mark.parametrize("kind", [object, list[object], dict[str, object], Hashable], ids=str)
async def test_parameter_of_any_type_takes_any_json(client: Client, kind: Any) -> None:
    async def store(job: Job, meta: Any) -> None: ...

    store.__annotations__["meta"] = kind
    handler = job(klass="shop.store")(store)
    token = Token("shop", "s" * 40, may_put=["*"])
    app = create_api(job_router(client, [handler]), identify=Tokens([token]))
    described = (await Program(app, "s" * 40).get("/openapi.json")).text
    assert "Any JSON." in described


async def test_data_that_no_handler_takes_is_refused(client: Client, shop: Program) -> None:
    for content, status in (
        (b'{"name": 1e999}', 400), (b"[" * 100_000 + b"]" * 100_000, 400), (b"", 422),
        (b'{"name": 12345678901234567890123456789012345678901234567890}', 422),
    ):  # fmt: skip
        headers = {"Content-Type": "application/json"}
        answer = await shop.post("/klasses/shop.greet", content=content, headers=headers)
        assert answer.status_code == status, (content[:50], answer.text)
    assert await client.queues() == []


async def test_large_body_in_chunks_is_refused(shop: Program) -> None:
    async def chunks() -> Any:
        for _ in range(40):
            yield b"x" * (1 << 16)

    headers = {"Content-Type": "application/json"}
    answer = await shop.post("/klasses/shop.greet", content=chunks(), headers=headers)
    assert refusal(answer) == (413, "size")


async def test_body_that_breaks_off_puts_nothing(client: Client, app: ASGIApp) -> None:
    headers = {"authorization": f"Bearer {SHOP}", "content-type": "application/json"}
    scope = {
        "type": "http", "method": "POST", "path": "/klasses/shop.greet", "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    part = {"type": "http.request", "body": b'{"name": "Ada"}', "more_body": True}
    events: Iterator[dict[str, Any]] = iter([part, {"type": "http.disconnect"}])
    sent: list[Any] = []

    async def receive() -> Mapping[str, Any]:
        return next(events)

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)  # type: ignore[arg-type]
    assert sent[0]["status"] == 408 and await client.queues() == []


async def test_large_numbers_are_kept_as_they_are(client: Client, shop: Program) -> None:
    for number in (2**53 + 1, -(2**63), 0.1, 1e308):
        put = await shop.put("back.greet", {"n": number})
        found = await client.jobs.get(put["jid"])
        assert found and json.loads(found.text) == {"n": number}


@pytest.mark.parametrize(
    "path",
    [
        "/klasses/none", "/klasses/shop.greet/", "/klasses/../jobs", "/jobs/", "/jobs/a/b/c", "/",
        "/klasses/shop.greet%2Fmany", "/jobs/%2e%2e/retry", "//jobs/a", "/jobs/a%00",
        "/jobs/%0d%0a", "/jobs/" + "x" * 600, "/sets/" + "x" * 200, "/sets/%F0%9F%98%80",
    ],
)  # fmt: skip
async def test_odd_paths_are_not_found(shop: Program, path: str) -> None:
    answer = await shop.get(path)
    assert answer.status_code in (400, 404, 405) and answer.json()["message"]
    assert answer.headers["content-type"] == "application/json"


async def test_outage_is_answered_with_503(own_server: OwnServer) -> None:
    async with Client(own_server.url) as client:
        shop = Program(create_api(job_router(client, jobs), identify=KNOWN), SHOP)
        put = await shop.put("shop.greet", {"name": "Ada"}, "k")
        assert (await shop.get("/health")).json() == {"redis": True}
        own_server.kill()
        for answer in (
            await shop.ask_to_put("shop.greet", {"name": "Ada"}, "k"),
            await shop.get(f"/jobs/{put['jid']}"), await shop.get("/health"),
            await shop.get(f"/klasses/shop.greet/results/{put['jid']}", params={"wait": 5}),
            await shop.post("/klasses/shop.greet/many", json=[{"name": "Ada"}]),
        ):  # fmt: skip
            assert refusal(answer) == (503, "redis")


async def test_encrypted_jobs_are_put_and_read(redis_url: str) -> None:
    codec = Encryption(Encryption.new_key())
    async with Client(redis_url, namespace="secret", codec=codec) as client, Worker(client, jobs):
        shop = Program(create_api(job_router(client, jobs), identify=KNOWN), SHOP)
        put = await shop.put("shop.greet", {"name": "Ada Lovelace"}, "k")
        assert await shop.put("shop.greet", {"name": "Ada Lovelace"}, "k") == {
            **put,
            "existing": True,
        }
        path = f"/klasses/shop.greet/results/{put['jid']}"
        answer = await shop.get(path, params={"wait": 30})
        assert answer.json()["result"] == "Hello Ada Lovelace"
        found = await client.jobs.get(put["jid"])
        assert found and "Ada Lovelace" not in found.raw_data
        async with Client(redis_url, namespace="secret") as plain:
            keyless = Program(create_api(job_router(plain, jobs), identify=KNOWN), SHOP)
            assert refusal(await keyless.get(path)) == (422, "data")


def test_what_can_not_be_served_is_refused(client: Client) -> None:
    @job(klass="a/b")
    async def odd(job: Any) -> None: ...

    @job(klass="late", unique=Unique(("name",), debounce=5))
    async def late(job: Any, name: str) -> None: ...

    tokens = Tokens([Token("shop", SHOP, may_put=["*"])])
    for handler, why in ((odd, "part of a path"), (late, "debounce")):
        with pytest.raises(ValueError, match=why):
            create_api(job_router(client, handler), identify=tokens)
    with pytest.raises(ValueError, match=r"'shop\.gret' fits no handler"):
        create_api(
            job_router(client, jobs), identify=Tokens([Token("shop", SHOP, may_put=["shop.gret"])])
        )
    with pytest.raises(TypeError, match="partitions"):
        job_router(PartitionedClient("redis://localhost", partitions=4), jobs)
