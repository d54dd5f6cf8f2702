"""Data of jobs is kept byte for byte by every command."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lua.story import Story

ODD = [
    "[]", "{}", "[[],{}]", '{"a":[],"b":{}}', "null", "true", "0", "-0", "0.0", "1.0", "1e400",
    "-1E+2", "0.1000", "12345678901234567",
    "123456789012345678901234567890", '""', '"\\u0000"', '"\\u00e9\\u00E9é"', '"\\ud800"',
    '"\\udc00\\ud800"', '"\\ud83d\\ude00😀"',
    '"\\\\\\ud800"', '"\\\\ud800"', '"\\/\\b\\f\\n\\r\\t"',
    '{"a":1,"a":2}', '{"b":1,"a":2}', ' \t\r\n[ 1 ,\n2 ] \n', '{"":{"":""}}',
    "[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900,
    '"' + "x" * 65_000 + '"', '"' + "é" * 40_000 + '"', "[" + ",".join(["1.50"] * 20_000) + "]",
    "[" * 2_000 + " " * 70_000 + "]" * 2_000,
]  # fmt: skip

LIMITS = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Generate JSON in other notations than that of Python's encoder."""
    values = st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: (
            st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5)
        ),
        max_leaves=20,
    )
    text = json.dumps(
        draw(values),
        ensure_ascii=draw(st.booleans()),
        indent=draw(st.sampled_from([None, 0, 3])),
        separators=draw(st.sampled_from([None, (",", ":"), (" ,\t", " :\n")])),
    )
    for written, otherwise in ((".0", ".000"), ("e+", "E"), ("/", "\\/"), ("A", "\\u0041")):
        if draw(st.booleans()) and (otherwise != ".000" or '"' not in text):
            text = text.replace(written, otherwise)
    space = draw(st.sampled_from(["", " ", "\n\t", "\r\n"]))
    return space + text + space


texts_but_false = texts().filter(lambda text: text.strip() != "false")


@pytest.fixture
def namespace() -> str:
    """Return one namespace for all examples, each of which empties it."""
    return "any-json"


@LIMITS
@given(texts_but_false, texts_but_false)
async def test_data_is_returned_byte_for_byte(story: Story, data: str, other: str) -> None:
    await run_all_commands(story, data, other)


@pytest.mark.parametrize("data", ODD, ids=lambda data: data[:20])
async def test_unusual_data_is_returned_byte_for_byte(story: Story, data: str) -> None:
    await run_all_commands(story, data, "[0.0]")
    await run_all_commands(story, "[0.0]", data)


async def run_all_commands(story: Story, data: str, other: str) -> None:
    """Move a job with its data through all states and commands."""
    store = story.store
    await story.redis.flushdb()

    # Put and popped
    await story.put("a", 0, data=data)
    await store.put_many(
        queue="mail",
        now=1,
        batch=[{"jid": "b", "klass": "K", "data": data}, {"jid": "c", "klass": "K", "data": other}],
    )
    await story.recur("r", 2, data=data)
    assert await shown(story, "peek", queue="mail", count=10, now=2) == [data, data, other, data]
    assert await shown(story, "pop", queue="mail", worker="ann", count=3, now=3) == [
        data,
        data,
        other,
    ]
    [[row], *_] = await store.pop_many(
        worker="ann", count=1, now=3, order="ordered", batch=[{"queue": "mail"}]
    )
    assert data.encode() in row
    assert (await store.recur_get(jid="r"))["data"] == data

    # Commands without data leave it unchanged
    await story.heartbeat("a", 4)
    await store.heartbeat_many(worker="ann", now=4, batch=[{"jid": "a"}, {"jid": "c"}])
    await store.tag_add(jid="a", now=4, tags=["x"])
    await store.log(jid="a", message="hm", now=4, data=json.dumps({"data": data}))
    await store.priority(jid="a", priority=-1)
    await story.timeout("b", at=5)
    await story.retry("a", 5)
    assert await story.pop(6, count=2) == ["b", "a"]
    await story.release("a", 7)
    assert await story.pop(8) == ["a"]
    await story.fail("a", 9)
    assert await shown(story, "failed", group="typo") == [data]
    await store.unfail(queue="mail", group="typo", now=10)
    assert await story.pop(11) == ["a"]
    assert await story.complete("a", 12, data="", next="post") == "waiting"
    assert await store.check(now=12, budget=10_000) == {
        "cursor": "0",
        "examined": pytest.approx(50, abs=50),
        "found": [],
        "fixed": 0,
    }
    assert await shown(story, "multiget", jids=["a", "b", "c"]) == [data, data, other]

    # Commands that replace data
    assert await story.pop(13, queue="post") == ["a"]
    await story.heartbeat("a", 14, data=other)
    assert await stored(story, "a") == other
    assert (
        await story.complete("a", 15, queue="post", data=data, next="mail", delay=1) == "scheduled"
    )
    assert await stored(story, "a") == data
    await store.requeue(queue="mail", jid="a", klass="K", data=other, now=16, delay=0)
    assert await stored(story, "a") == other
    assert await story.pop(17) == ["a"]
    await story.fail("a", 18, data=data)
    assert await stored(story, "a") == data
    await store.complete_many(
        worker="ann",
        now=19,
        batch=[{"jid": "b", "queue": "mail", "data": other}, {"jid": "c", "queue": "mail"}],
    )
    assert (await stored(story, "b"), await stored(story, "c")) == (other, other)
    await store.recur_update(jid="r", pairs=["data", other])
    await story.peek(100)
    assert await stored(story, "r-2") == other


async def shown(story: Story, command: str, **arguments: Any) -> list[str]:
    reply = await story.call(command, **arguments)
    return [job["data"] for job in (reply if isinstance(reply, list) else reply["jobs"])]


async def stored(story: Story, jid: str) -> str:
    """Return the data in Redis and that of `get`, which must be equal."""
    data = (await story.job(jid))["data"]
    assert (await story.get(jid))["data"] == data
    return data


@pytest.mark.parametrize(
    "more",
    ['{"a":' * 100 + "1" + "}" * 100, '{"a":"' + "x" * 70_000 + '"}', '{"when":1,"what":2,"a":[]}'],
)
async def test_data_of_a_logged_event_is_returned_with_the_job(story: Story, more: str) -> None:
    await story.redis.flushdb()
    await story.put("a", 0)
    await story.store.log(jid="a", message="hm", now=1, data=more)
    event = (await story.get("a"))["history"][-1]
    assert (event["when"], event["what"], len(event)) == (1, "hm", 3)
