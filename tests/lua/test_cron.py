"""Recurring jobs with cron expressions: callers compute the times, scripts store them."""

import asyncio
from typing import Any

import pytest

from aioqless.errors import NoSuchJob
from aioqless.store import TickRow
from tests.lua.story import Story, score

NOTHING_DUE = {"made": [], "due": []}  # type: ignore[var-annotated]


# Templates


async def test_cron_template_is_stored_where_other_clients_do_not_pop_it(story: Story) -> None:
    await story.cron(
        "night",
        10,
        next=7200,
        priority=-2,
        tags=["x"],
        retries=3,
        backlog=4,
        timezone="Asia/Tokyo",
        data="[ ]",
    )
    assert {key for key in await story.all_keys() if "request" not in key} == {
        "x:cron:night",
        "x:ticks",
        "queues",
        "x:agenda",
        "x:old-statistics",
    }
    assert await story.fields("x:cron:night") == {
        "jid": "night", "klass": "Greet", "data": "[ ]", "priority": "2", "tags": '["x"]',
        "state": "recur", "queue": "mail",
        "type": "cron", "cron": "0 2 * * *", "timezone": "Asia/Tokyo", "retries": "3",
        "backlog": "4", "count": "0",
    }  # fmt: skip
    assert await story.scores("x:ticks") == {"night": 7200}


async def test_cron_template_is_returned_like_an_interval_template(story: Story) -> None:
    await story.cron("night", 10, next=7200, priority=-2, tags=["x"])
    assert await story.store.recur_get(jid="night") == {
        "jid": "night", "klass": "Greet", "state": "recur", "queue": "mail", "priority": -2,
        "interval": None, "retries": 5, "count": 0,
        "data": "{}", "tags": ["x"], "backlog": 0, "coalesce": True, "cron": "0 2 * * *",
        "timezone": "UTC", "paused": False,
        "declared": None, "next": 7200,
        "until": None, "max_runs": None, "runs_left": None, "jitter": 0, "ended": False,
        "expires_in": None, "constraints": None,
    }  # fmt: skip


async def test_cron_template_can_be_changed_tagged_and_deleted(
    story: Story,
) -> None:
    await story.cron("night", 10, next=7200)
    pairs: list[Any] = [
        "klass",
        "Send",
        "queue",
        "post",
        "cron",
        "0 3 * * *",
        "timezone",
        "Asia/Tokyo",
        "next",
        9000,
        "backlog",
        2,
    ]
    await story.store.recur_update(jid="night", pairs=pairs)
    view = await story.store.recur_get(jid="night")
    assert (view["klass"], view["queue"], view["cron"], view["timezone"], view["next"]) == (
        "Send",
        "post",
        "0 3 * * *",
        "Asia/Tokyo",
        9000,
    )
    assert (view["backlog"], view["coalesce"]) == (2, False)
    assert await story.store.recur_tag(jid="night", tags=["x"]) == ["x"]
    assert set(await story.scores("queues")) == {"mail", "post"}
    await story.store.recur_off(jid="night")
    assert await story.store.recur_get(jid="night") is None
    assert (await story.fields("x:cron:night"), await story.scores("x:ticks")) == ({}, {})


async def test_template_put_again_with_the_other_kind_of_schedule_keeps_its_count(
    story: Story,
) -> None:
    await story.recur("r", 0, interval=60)
    assert await story.pop(0) == ["r-1"]
    await story.complete("r-1", 1)
    await story.cron("r", 10, next=7200)
    assert (await story.fields("r:r"), await story.scores("q:mail-recur")) == ({}, {})
    assert (await story.tick(7200, ("r", 7200, 7200, 9000)))["made"] == ["r-2"]
    await story.recur("r", 8000, interval=60)
    assert (await story.fields("x:cron:r"), await story.scores("x:ticks")) == ({}, {})
    assert await story.peek(8000) == ["r-2", "r-3"]
    assert "cron" not in await story.fields("r:r")


# Ticks


async def test_instance_is_a_job_put_when_it_was_due(story: Story) -> None:
    await story.cron("night", 10, next=7200, priority=-2, tags=["x"], retries=3, data="[ ]")
    assert (await story.tick(7200.5, ("night", 7200, 7200, 93600)))["made"] == ["night-1"]
    assert await story.job("night-1") == {
        "jid": "night-1", "klass": "Greet", "data": "[ ]", "priority": "2", "tags": '["x"]',
        "state": "waiting",
        "queue": "mail", "retries": "3", "remaining": "3",
        "time": "7200." + 6 * "0", "spawned_from_jid": "night",
        "history": '[{"q":"mail","put":7200.000000}]',
    }  # fmt: skip
    assert await story.where("night-1") == {"work": score(2, 7200)}
    assert await story.scores("x:ticks") == {"night": 93600}
    assert await story.pop(7201) == ["night-1"]


async def test_due_ticks_are_returned_with_their_schedules(story: Story) -> None:
    await story.cron("night", 10, next=7200)
    await story.cron(
        "day", 10, next=50000, expression="0 14 * * *", timezone="Europe/Paris", backlog=3
    )
    assert await story.tick(7199) == {"now": 7199, "next": 7200, **NOTHING_DUE}
    assert await story.tick(7200) == {
        "now": 7200, "made": [], "next": 50000,
        "due": [{"jid": "night", "tick": 7200, "cron": "0 2 * * *", "timezone": "UTC",
            "backlog": None, "until": None}],
    }  # fmt: skip
    due = await story.tick(60000)
    assert (due["next"], [each["backlog"] for each in due["due"]]) == (None, [None, 3])
    assert [each["jid"] for each in (await story.tick(60000, offset=1))["due"]] == ["day"]


async def test_concurrent_ticks_make_one_instance(story: Story) -> None:
    await story.cron("night", 10, next=7200)
    answers = await asyncio.gather(
        *(story.tick(7200, ("night", 7200, 7200, 93600)) for _ in range(20))
    )
    assert sorted(jid for answer in answers for jid in answer["made"]) == [""] * 19 + ["night-1"]
    assert await story.scores("q:mail-work") == {"night-1": score(0, 7200)}


async def test_missed_ticks_are_made_up_in_one_call(story: Story) -> None:
    await story.cron("night", 10, next=100, backlog=0)
    rows = [("night", 100, 100, 200), ("night", 200, 200, 300), ("night", 300, 300, 400)]
    assert (await story.tick(350, *rows))["made"] == ["night-1", "night-2", "night-3"]
    assert await story.tick(350, *rows) == {
        "now": 350,
        "made": ["", "", ""],
        "due": [],
        "next": 400,
    }


async def test_tick_of_a_changed_paused_or_deleted_template_makes_nothing(
    story: Story,
) -> None:
    for jid in ("changed", "paused", "off"):
        await story.cron(jid, 10, next=100)
    await story.store.recur_update(jid="changed", pairs=["cron", "0 3 * * *", "next", "150"])
    await story.store.recur_pause(jid="paused", now=20)
    await story.store.recur_off(jid="off")
    assert (
        await story.tick(
            120, *((jid, 100, 100, 200) for jid in ("changed", "paused", "off", "unknown"))
        )
    )["made"] == [""] * 4
    assert await story.scores("x:ticks") == {"changed": 150}
    assert await story.scores("q:mail-work") == {}


async def test_instance_with_a_jid_in_use_gets_another_number(
    story: Story,
) -> None:
    for number in range(1, 151):
        await story.put(f"night-{number}", 0)
    await story.cron("night", 10, next=100)
    first = await story.tick(100, ("night", 100, 100, 200))
    assert (first["made"], first["due"][0]["tick"]) == ([""], 100)
    assert (await story.tick(100, ("night", 100, 100, 200)))["made"] == ["night-151"]
    assert await story.scores("x:ticks") == {"night": 200}


async def test_incomplete_template_makes_no_instance_and_blocks_no_other(
    story: Story,
) -> None:
    await story.cron("night", 10, next=100)
    await story.change("HDEL", "x:cron:night", "klass")
    assert await story.tick(100, ("night", 100, 100, 200)) == {
        "now": 100,
        "made": [""],
        "due": [],
        "next": 200,
    }


async def test_scheduled_entry_without_a_template_is_removed_when_due(story: Story) -> None:
    await story.change("ZADD", "x:ticks", 5, "ghost")
    assert await story.tick(10) == {"now": 10, "next": None, **NOTHING_DUE}
    assert await story.scores("x:ticks") == {}


async def test_repeated_tick_returns_its_instance_and_makes_no_other(story: Story) -> None:
    await story.cron("night", 10, next=100)
    batch: list[TickRow] = [{"jid": "night", "tick": 100, "at": 100, "next": 200}]
    answers = [await story.store.tick(now=now, batch=batch, request="line:1") for now in (150, 250)]
    assert [answer["made"] for answer in answers] == [["night-1"], ["night-1"]]
    assert answers[1]["due"][0]["tick"] == 200, "what is due is told as it is now"


async def test_schedulers_are_notified_when_the_first_tick_becomes_earlier(story: Story) -> None:
    async with story.published() as told:
        await story.cron("late", 10, next=9000)
        await story.cron("early", 10, next=7200)
        await story.cron("later", 10, next=10000)
        await story.store.recur_update(jid="later", pairs=["cron", "0 1 * * *", "next", "3600"])
    assert [channel for channel, _ in told] == ["x:ticks-changed"] * 3


# Pause, resume, run


@pytest.mark.parametrize("kind", ["interval", "cron"])
async def test_paused_template_makes_nothing_and_restarts_its_clock_when_resumed(
    story: Story, kind: str
) -> None:
    await (
        story.recur("r", 0, interval=60, offset=60)
        if kind == "interval"
        else story.cron("r", 0, next=60)
    )
    before = await story.store.recur_get(jid="r")
    await story.store.recur_pause(jid="r", now=10)
    paused = await story.store.recur_get(jid="r")
    assert paused == before | {"paused": True, "next": None}
    assert (await story.pop(1000), (await story.tick(1000))["due"]) == ([], [])
    await story.store.recur_resume(jid="r", now=1000, next=1060)
    assert await story.store.recur_get(jid="r") == before | {"next": 1060}
    assert await story.scores("x:paused-recurring") == {}


async def test_resumed_template_with_an_interval_is_due_when_it_was_if_that_is_later(
    story: Story,
) -> None:
    await story.recur("r", 0, interval=86400, offset=300)
    for now in (10, 20):
        await story.store.recur_pause(jid="r", now=now)
    await story.store.recur_resume(jid="r", now=30)
    assert (await story.store.recur_get(jid="r"))["next"] == 300
    await story.store.recur_pause(jid="r", now=40)
    await story.store.recur_resume(jid="r", now=301)
    assert (await story.store.recur_get(jid="r"))["next"] == 301 + 86400
    await story.store.recur_pause(jid="r", now=400)
    await story.recur("r", 500, interval=60)
    await story.store.recur_resume(jid="r", now=600)
    assert (await story.store.recur_get(jid="r"))["next"] == 660, "it has another schedule"


async def test_paused_template_is_hidden_from_other_clients(story: Story) -> None:
    await story.recur("r", 0)
    await story.store.recur_pause(jid="r", now=10)
    assert await story.scores("q:mail-recur") == {}
    assert (await story.fields("r:r"))["x-paused"] == "10"
    assert await story.scores("x:paused-recurring") == {"r": 10}


async def test_pausing_and_resuming_are_idempotent(story: Story) -> None:
    await story.recur("r", 0, interval=60)
    for now in (10, 20):
        await story.store.recur_pause(jid="r", now=now)
    assert await story.scores("x:paused-recurring") == {"r": 10}
    for now in (30, 40):
        await story.store.recur_resume(jid="r", now=now)
    assert await story.scores("q:mail-recur") == {"r": 90}


async def test_paused_template_stays_paused_when_put_again_changed_or_moved(
    story: Story,
) -> None:
    await story.recur("r", 0)
    await story.store.recur_pause(jid="r", now=10)
    await story.store.recur_update(jid="r", pairs=["queue", "post", "interval", "30"])
    await story.recur("r", 20, interval=5)
    await story.cron("r", 30, next=60)
    assert (await story.store.recur_get(jid="r"))["paused"] is True
    assert (
        await story.scores("x:ticks"),
        await story.scores("q:mail-recur"),
        await story.scores("q:post-recur"),
    ) == ({}, {}, {})


async def test_paused_template_put_again_by_another_client_is_resumed(story: Story) -> None:
    await story.recur("r", 0)
    await story.store.recur_pause(jid="r", now=10)
    await story.change("ZADD", "q:mail-recur", 20, "r")
    assert (await story.store.recur_get(jid="r"))["paused"] is False
    await story.recur("r", 30, offset=5)
    assert (await story.store.recur_get(jid="r"))["next"] == 35
    assert (await story.scores("x:paused-recurring"), "x-paused" in await story.fields("r:r")) == (
        {},
        False,
    )


@pytest.mark.parametrize("kind", ["interval", "cron"])
async def test_template_run_now_makes_an_instance_without_changing_its_clock(
    story: Story, kind: str
) -> None:
    await (
        story.recur("r", 0, interval=60, offset=60)
        if kind == "interval"
        else story.cron("r", 0, next=60)
    )
    assert await story.store.recur_run(jid="r", now=10) == "r-1"
    assert await story.where("r-1") == {"work": score(0, 10)}
    assert (await story.store.recur_get(jid="r"))["next"] == 60
    await story.store.recur_pause(jid="r", now=11)
    assert await story.store.recur_run(jid="r", now=12) == "r-2", "whoever asks for it means it"


@pytest.mark.parametrize("word", ["pause", "resume", "run"])
async def test_template_that_does_not_exist_is_refused(story: Story, word: str) -> None:
    async with story.refused(NoSuchJob, jid="r"):
        await story.call("recur", word, jid="r", now=1)


# Listed


async def test_templates_are_listed_by_queue_including_those_without_a_next_time(
    story: Story,
) -> None:
    await story.recur("late", 0, offset=50)
    await story.recur("early", 0, offset=20)
    await story.recur("other", 0, queue="post")
    await story.cron("night", 0, next=100)
    await story.cron("noon", 0, next=50)
    for jid in ("other", "late"):
        await story.store.recur_pause(jid=jid, now=1)
    await story.store.recur_resume(jid="late", now=2)

    async def listed(queue: str | None, **page: int) -> list[str]:
        return [template["jid"] for template in await story.store.recurring(queue=queue, **page)]

    assert await listed("mail") == ["early", "late"]
    assert await listed("post") == []
    assert await listed(None) == ["noon", "night", "other"]
    assert (await listed(None, count=2), await listed(None, offset=1, count=9)) == (
        ["noon", "night"],
        ["night", "other"],
    )
    assert (await story.store.recurring(queue="mail"))[0] == await story.store.recur_get(
        jid="early"
    )


# Declared


async def _declare(story: Story, at: float, *, every: float | None = None, **more: Any) -> object:
    given: dict[str, Any] = {
        "queue": "mail",
        "jid": "r",
        "klass": "r",
        "data": "{}",
        "now": at,
        "next": at + (every or 100),
        **more,
    }
    if every:
        return await story.store.declare_interval(interval=every, **given)
    return await story.store.declare_cron(**{"expression": "0 2 * * *", "timezone": "UTC"} | given)


@pytest.mark.parametrize("every", [60, None])
async def test_redeclared_template_keeps_its_clock_and_takes_other_changes(
    story: Story, every: float | None
) -> None:
    assert await _declare(story, 10, every=every) == "made"
    due = (await story.store.recur_get(jid="r"))["next"]
    assert await _declare(story, 20, every=every, data="[2]", retries=1, queue="post") == "kept"
    view = await story.store.recur_get(jid="r")
    assert (view["data"], view["retries"], view["queue"], view["declared"], view["next"]) == (
        "[2]",
        1,
        "post",
        20,
        due,
    )
    turns = {
        key: value
        for key, value in (await story.all_keys()).items()
        if key.endswith("-recur") or key == "x:ticks"
    }
    assert list(turns.values()) == [{"r": due}]


async def test_changed_schedule_restarts_the_clock(story: Story) -> None:
    await _declare(story, 10, every=60)
    changes: list[dict[str, Any]] = [
        {"every": 30},
        {},
        {"expression": "0 3 * * *"},
        {"expression": "0 3 * * *", "timezone": "Asia/Tokyo"},
    ]
    for at, how in enumerate(changes, 20):
        assert await _declare(story, at, **how) == "retimed"
        assert (await story.store.recur_get(jid="r"))["next"] == at + how.get("every", 100)


@pytest.mark.parametrize("every", [60, None])
async def test_pause_survives_declarations(story: Story, every: float | None) -> None:
    await _declare(story, 10, every=every)
    await story.store.recur_pause(jid="r", now=11)
    assert await _declare(story, 20, every=every) == "kept"
    assert await _declare(story, 20, every=30) == "retimed"
    view = await story.store.recur_get(jid="r")
    assert (view["paused"], view["next"]) == (True, None)


async def test_only_declared_templates_are_dropped(story: Story) -> None:
    await _declare(story, 10, every=60)
    await _declare(story, 10, jid="night")
    await story.recur("by hand", 10)
    await _declare(story, 10, jid="taken over", every=60)
    await story.recur("taken over", 20)
    assert await story.store.declare_off(
        jids=["r", "night", "by hand", "taken over", "unknown"]
    ) == ["r", "night"]
    assert await story.scores("q:mail-recur") == {"by hand": 10, "taken over": 20}
