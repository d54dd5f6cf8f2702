"""recur: templates that put an instance at each interval."""

from typing import Any

import pytest

from tests.lua.story import Story, score


async def _template(story: Story, jid: str = "r") -> Any:
    return await story.store.recur_get(jid=jid)


async def _update(story: Story, *pairs: Any) -> Any:
    return await story.store.recur_update(jid="r", pairs=pairs)


# The template


async def test_template_is_stored_like_by_other_qless_clients(story: Story) -> None:
    assert (
        await story.recur(
            "r",
            10,
            data="[ ]",
            interval=60,
            offset=5,
            priority=-2,
            tags=["x"],
            retries=3,
            backlog=4,
        )
        == "r"
    )
    assert await story.fields("r:r") == {
        "jid": "r", "klass": "Greet", "data": "[ ]", "priority": "2", "tags": '["x"]',
        "state": "recur", "queue": "mail",
        "type": "interval", "interval": "60", "retries": "3", "backlog": "4", "count": "0",
        "x-first": "0",
    }  # fmt: skip
    assert await story.scores("q:mail-recur") == {"r": 15}
    assert await story.scores("queues") == {"mail": 10}
    assert await story.scores("tags") == {}, "only instances have tags"


async def test_template_is_returned_with_all_fields(story: Story) -> None:
    await story.recur(
        "r", 10, data="[ ]", interval=60, offset=5, priority=-2, tags=["x"], retries=3, backlog=4
    )
    assert await _template(story) == {
        "jid": "r", "klass": "Greet", "state": "recur", "queue": "mail", "priority": -2,
        "interval": 60, "retries": 3, "count": 0,
        "data": "[ ]", "tags": ["x"], "backlog": 4, "coalesce": False, "cron": None,
        "timezone": None, "paused": False, "declared": None,
        "next": 15,
        "until": None, "max_runs": None, "runs_left": None, "jitter": 0, "ended": False,
        "expires_in": None, "constraints": None,
    }  # fmt: skip
    assert await _template(story, "unknown") is None


async def test_template_put_again_keeps_its_count_and_restarts_its_clock(
    story: Story,
) -> None:
    await story.recur("r", 0, tags=["x"], backlog=3, priority=5)
    assert await story.peek(0) == ["r-1"]
    await story.recur("r", 100, queue="post", klass="Send", interval=10, offset=7)
    template = await _template(story)
    assert (template["klass"], template["queue"], template["interval"], template["count"]) == (
        "Send",
        "post",
        10,
        1,
    )
    assert (template["tags"], template["backlog"], template["priority"]) == ([], 0, 0)
    assert (await story.scores("q:mail-recur"), await story.scores("q:post-recur")) == (
        {},
        {"r": 107},
    )


async def test_deleted_template_leaves_its_instances(story: Story) -> None:
    await story.recur("r", 0)
    assert await story.peek(0) == ["r-1"]
    assert await story.store.recur_off(jid="r") == 1
    assert (await _template(story), await story.scores("q:mail-recur")) == (None, {})
    assert await story.pop(100) == ["r-1"]
    assert await story.store.recur_off(jid="r") == 1, "also when there was none"


# Instances


async def test_instance_is_a_job_put_when_it_was_due(story: Story) -> None:
    await story.recur(
        "r", 10, data="[ ]", interval=60, offset=5.5, priority=-2, tags=["x"], retries=3, backlog=4
    )
    assert await story.peek(20) == ["r-1"]
    assert await story.job("r-1") == {
        "jid": "r-1", "klass": "Greet", "data": "[ ]", "priority": "2", "tags": '["x"]',
        "state": "waiting",
        "queue": "mail", "retries": "3", "remaining": "3",
        "time": "15." + 6 * "0", "spawned_from_jid": "r",
        "history": '[{"q":"mail","put":15.000000}]',
    }  # fmt: skip
    assert await story.where("r-1") == {"work": score(2, 15)}
    assert (await story.scores("t:x"), await story.scores("tags")) == ({"r-1": 20}, {"x": 1})
    assert (await story.scores("q:mail-recur"), (await _template(story))["count"]) == ({"r": 75}, 1)
    assert (await story.get("r-1"))["spawned_from_jid"] == "r"


async def test_instances_are_made_up_to_the_requested_count(
    story: Story,
) -> None:
    await story.recur("r", 0, interval=10, backlog=0)
    assert await story.pop(45, count=2) == ["r-1", "r-2"]
    assert await story.scores("q:mail-recur") == {"r": 20}
    assert await story.pop(45, count=9) == ["r-3", "r-4", "r-5"]
    assert await story.pop(45, count=9) == []


@pytest.mark.parametrize(
    ("backlog", "made"),
    [(0, [0, 10, 20, 30, 40]), (1, [40]), (3, [20, 30, 40]), (9, [0, 10, 20, 30, 40])],
)
async def test_backlog_limits_the_missed_instances_that_are_made_up(
    story: Story, backlog: int, made: list[int]
) -> None:
    await story.recur("r", 0, interval=10, backlog=backlog)
    jids = await story.peek(45)
    assert [(await story.event_times(jid))[0] for jid in jids] == [(at, "put") for at in made]
    assert await story.scores("q:mail-recur") == {"r": 50}


async def test_template_of_another_client_without_backlog_makes_up_for_all(story: Story) -> None:
    await story.recur("r", 0, interval=10)
    await story.change("HDEL", "r:r", "x-coalesce")
    assert len(await story.peek(45)) == 5


async def test_template_put_again_does_not_reuse_jids_of_existing_instances(
    story: Story,
) -> None:
    await story.recur("r", 0)
    assert await story.pop(0) == ["r-1"]
    await story.store.recur_off(jid="r")
    await story.recur("r", 10)
    assert await story.pop(10, worker="bob") == ["r-2"]
    assert (await story.get("r-1"))["worker"] == "ann"


async def test_template_without_a_hash_makes_nothing(story: Story) -> None:
    await story.change("ZADD", "q:mail-recur", 1, "ghost")
    await story.put("a", 1)
    assert await story.pop(2, count=2) == ["a"]


# Changes


async def test_options_of_instances_can_be_changed(story: Story) -> None:
    await story.recur("r", 0, offset=10)
    assert (
        await _update(
            story, "priority", -3, "retries", 1, "data", "[ 2 ]", "klass", "Send", "backlog", 2
        )
        == 1
    )
    template = await _template(story)
    assert (template["priority"], template["retries"], template["data"], template["klass"]) == (
        -3,
        1,
        "[ 2 ]",
        "Send",
    )
    assert (template["backlog"], template["coalesce"]) == (2, False)
    assert (await story.fields("r:r"))["priority"] == "3"
    assert await story.pop(10) == ["r-1"]
    job = await story.get("r-1")
    assert (job["priority"], job["retries"], job["data"], job["klass"]) == (-3, 1, "[ 2 ]", "Send")


async def test_tags_of_a_template_apply_to_its_next_instances(story: Story) -> None:
    await story.recur("r", 0, tags=["x"])
    assert await story.peek(0) == ["r-1"]
    assert await story.store.recur_tag(jid="r", tags=["y", "x", "z"]) == ["x", "y", "z"]
    assert await story.store.recur_untag(jid="r", tags=["x", "unknown"]) == ["y", "z"]
    assert (await story.fields("r:r"))["tags"] == '["y","z"]'
    assert (await story.get("r-1"))["tags"] == ["x"]
    assert await story.scores("tags") == {"x": 1}
    await story.peek(60)
    assert (await story.get("r-2"))["tags"] == ["y", "z"]
    assert await story.store.recur_untag(jid="r", tags=["y", "z"]) == []
    assert (await story.fields("r:r"))["tags"] == "[]"
