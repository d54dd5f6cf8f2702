"""Human tasks over HTTP; what holds for all operations is tested in tests/contrib/http."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import ASGIApp

from aioqless import Client
from aioqless.contrib.http import Identity, create_api
from aioqless.contrib.human_tasks import TaskQueue
from aioqless.contrib.human_tasks.api import task_router
from tests.conftest import Until, existing_job
from tests.contrib.human_tasks.conftest import KNOWN, SECRETS, Browser

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
    assert (await existing_job(client, "a")).history[0]["worker"].startswith("Ada@")


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


@pytest.mark.parametrize("name", ["", "a/b", "a b", "é"])
def test_task_queue_needs_a_name_for_its_path(tasks: TaskQueue, name: str) -> None:
    with pytest.raises(ValueError, match="part of a path"):
        create_api(task_router({name: tasks}))
