"""Jobs and templates are stored in the fields, and in the form, that other qless clients read."""

import pytest

from tests.lua.story import Story, score

A_MOMENT = 1353000060.123456


async def test_new_job_is_stored_like_by_other_qless_clients(story: Story) -> None:
    await story.put("a", A_MOMENT, data='{"n": 1}', priority=-3, tags=["x", "y"], retries=2)
    assert await story.job("a") == {
        "jid": "a", "klass": "Greet", "data": '{"n": 1}', "priority": "3", "tags": '["x","y"]',
        "state": "waiting",
        "queue": "mail", "retries": "2", "remaining": "2",
        "time": "1353000060.123456",
        "history": '[{"q":"mail","put":1353000060.123456}]',
    }  # fmt: skip


@pytest.mark.parametrize(
    ("at", "put"),
    [(1.9, '[1,"put",{"q":"mail"},0.900000]'), (2, '[2,"put",{"q":"mail"}]')],
)
async def test_put_is_in_the_hash_until_the_next_event(story: Story, at: float, put: str) -> None:
    await story.put("a", at)
    assert await story.items("j:a-history") == []
    assert [(event["what"], event["when"]) for event in (await story.get("a"))["history"]] == [
        ("put", at)
    ]
    assert await story.pop(3) == ["a"]
    assert await story.items("j:a-history") == [put, '[3,"popped",{"worker":"ann"}]']
    assert (await story.job("a"))["history"] == "[]"


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1, "-1"),
        (-10, "10"),
        (0.1, "-0.10000000000000001"),
        (-100, "100"),
    ],
)
async def test_sign_of_the_priority_is_inverted_in_redis(
    story: Story, said: float, stored: str
) -> None:
    await story.put("a", 0, priority=said)
    assert (await story.job("a"))["priority"] == stored
    assert (await story.get("a"))["priority"] == said


async def test_popped_job_is_stored_like_by_other_qless_clients(story: Story) -> None:
    await story.put("a", 5)
    await story.pop(A_MOMENT)
    stored = await story.job("a")
    assert (stored["state"], stored["worker"], stored["remaining"]) == ("running", "ann", "5")
    assert (stored["expires"], stored["time"]) == (
        "1353000120.123456",
        "1353000060.123456",
    )
    assert await story.where("a") == {"locks": A_MOMENT + 60}
    assert await story.scores("w:ann:jobs") == {"a": A_MOMENT + 60}
    assert await story.scores("workers") == {"ann": A_MOMENT}
    assert (await story.items("j:a-history"))[
        1
    ] == '[1353000060,"popped",{"worker":"ann"},0.123456]'


async def test_exact_expiry_is_stored(story: Story) -> None:
    await story.running("a")
    assert await story.heartbeat("a", 1353000060.123456) == 1353000120.123456
    assert (await story.job("a"))["expires"] == "1353000120.123456"


async def test_completed_job_is_stored_like_by_other_qless_clients(story: Story) -> None:
    await story.put("a", 0, retries=3)
    await story.pop(A_MOMENT - 1)
    await story.complete("a", A_MOMENT)
    stored = {
        name: value for name, value in (await story.job("a")).items() if not name.startswith("x-")
    }
    assert stored == {
        "jid": "a", "klass": "Greet", "data": "{}", "priority": "0", "tags": "[]",
        "state": "complete", "worker": "", "expires": "0",
        "queue": "", "retries": "3", "remaining": "3", "time": "1353000060.123456",
        "failure": "{}", "history": "[]",
    }  # fmt: skip
    assert await story.scores("completed") == {"a": A_MOMENT}
    assert (await story.items("j:a-history"))[2:] == ['[1353000060,"done",{},0.123456]']


async def test_failed_job_is_stored_like_by_other_qless_clients(story: Story) -> None:
    await story.put("a", 0, retries=3, priority=-1, tags=["x"])
    await story.pop(1)
    await story.fail("a", 2.9, message='say "no"')
    stored = {
        name: value for name, value in (await story.job("a")).items() if not name.startswith("x-")
    }
    assert stored == {
        "jid": "a", "klass": "Greet", "data": "{}", "priority": "1", "tags": '["x"]',
        "state": "failed", "worker": "", "expires": "",
        "queue": "mail", "retries": "3", "remaining": "3", "time": "1." + 6 * "0",
        "failure": '{"group":"typo","message":"say \\"no\\"","when":2,"worker":"ann"}',
        "history": "[]",
    }  # fmt: skip
    assert (await story.items("j:a-history"))[2:] in (
        ['[2,"failed",{"worker":"ann","group":"typo"},0.900000]'],
        ['[2,"failed",{"group":"typo","worker":"ann"},0.900000]'],
    )


async def test_exhausted_job_is_stored_as_failed(story: Story) -> None:
    await story.running("a", retries=0)
    assert await story.retry("a", 2.9, delay=10) == -1
    stored = await story.job("a")
    assert (
        stored["state"],
        stored["worker"],
        stored["expires"],
        stored["remaining"],
        stored["queue"],
    ) == ("failed", "", "", "-1", "mail")
    text = (
        '{"group":"failed-retries-mail","message":"Job exhausted retries in queue '
        '\\"mail\\"","when":2,"worker":"ann"}'
    )
    assert stored["failure"] == text
    assert (await story.where("a"), await story.scores("w:ann:jobs")) == ({}, {})
    assert (await story.items("f:failed-retries-mail"), await story.members("failures")) == (
        ["a"],
        {"failed-retries-mail"},
    )
    assert (await story.items("j:a-history"))[2:] == [
        '[2,"failed",{"group":"failed-retries-mail"},0.900000]'
    ]
    assert await story.day() == {"failures": "1", "failed": "1"}


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
    assert (await story.scores("q:mail-recur"), (await story.fields("r:r"))["count"]) == (
        {"r": 75},
        "1",
    )
    assert (await story.get("r-1"))["spawned_from_jid"] == "r"
