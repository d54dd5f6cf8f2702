"""Import of Sidekiq, exq and Resque jobs: never lost or doubled, arguments byte for byte."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis as SyncRedis

from aioqless.contrib.foreign_queues.generated_commands import ForeignQueuesCommands
from aioqless.errors import InvalidArgument, QueueFull
from aioqless.store.script_composer import compose
from tests.lua.story import Story

EXISTS = "a job with this jid exists"


class ForeignQueue:
    """Another system's keys, and the import from them."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.prefix = f"{story.namespace}-there:"

    async def push(self, *entries: bytes | str | dict[str, Any], queue: str = "mail") -> None:
        """Push a job as Sidekiq's clients do."""
        for entry in entries:
            text = json.dumps(entry) if isinstance(entry, dict) else entry
            await self.story.ask("LPUSH", f"{self.prefix}queue:{queue}", text)
        await self.story.ask("SADD", f"{self.prefix}queues", queue)

    async def schedule(self, at: float, name: str = "schedule", **entry: Any) -> None:
        job = {"class": "Greet", "queue": "mail", "args": [], "retry": True, **entry}
        await self.story.ask("ZADD", f"{self.prefix}{name}", at, json.dumps(job))

    async def take(
        self,
        at: float = 10,
        *,
        queue: str = "mail",
        side: str = "right",
        count: int = 100,
        into: str = "",
        **more: Any,
    ) -> Any:
        given: dict[str, Any] = {
            "prefix": self.prefix,
            "into": into,
            "now": at,
            "queue": queue,
            "side": side,
            "count": count,
        }
        return await ForeignQueuesCommands(self.story.store).import_queue(**given, **more)

    async def due(
        self,
        at: float,
        word: str = "schedule",
        *,
        offset: int = 0,
        count: int = 100,
        queues: tuple[str, ...] = (),
        **more: Any,
    ) -> Any:
        given: dict[str, Any] = {
            "prefix": self.prefix,
            "into": "",
            "now": at,
            "offset": offset,
            "count": count,
            "queues": queues,
        }
        return await self.story.call("import", word, **{**given, **more})

    async def left(self, queue: str = "mail") -> int:
        return int(await self.story.ask("LLEN", f"{self.prefix}queue:{queue}"))

    async def aside(self) -> list[dict[str, Any]]:
        return [
            json.loads(each)
            for each in await self.story.ask("LRANGE", self.story.key("x:rejected-imports"), 0, -1)
        ]


@pytest.fixture
def there(story: Story) -> ForeignQueue:
    return ForeignQueue(story)


def _taken(count: int, **more: Any) -> dict[str, Any]:
    return {"taken": count, "passed": 0, "refused": [], "more": False, **more}


async def test_entry_becomes_a_job(story: Story, there: ForeignQueue) -> None:
    entry = {
        "class": "HardWorker",
        "args": [1, "two"],
        "jid": "a1",
        "retry": 7,
        "tags": ["x", "y"],
        "created_at": 1.5,
        "queue": "mail",
    }
    await there.push(entry)
    assert await there.take() == _taken(1)
    job = await story.get("a1")
    kept = {
        name: job[name]
        for name in ("klass", "data", "queue", "state", "retries", "remaining", "tags", "priority")
    }
    assert kept == {
        "klass": "HardWorker", "data": '[1, "two"]', "queue": "mail", "state": "waiting",
        "retries": 7, "remaining": 7,
        "tags": ["x", "y"], "priority": 0,
    }  # fmt: skip
    assert (await there.left(), await story.event_times("a1")) == (0, [(10, "put")])


async def test_jobs_keep_the_order_of_their_source(story: Story, there: ForeignQueue) -> None:
    await there.push(*({"class": "K", "args": [], "jid": jid} for jid in "zya"))
    assert await there.take(count=2) == _taken(2, more=True)
    await there.take(11)
    assert await story.pop(12, count=9) == ["z", "y", "a"]


async def test_queues_that_are_pushed_on_the_right_are_read_from_the_left(
    story: Story, there: ForeignQueue
) -> None:
    await there.push(*({"class": "K", "args": [], "jid": jid} for jid in "abc"))
    await there.take(side="left")
    assert await story.pop(12, count=9) == ["c", "b", "a"]


async def test_queues_can_be_renamed(story: Story, there: ForeignQueue) -> None:
    await there.push({"class": "K", "args": [], "jid": "a"})
    await there.take(into="ruby-")
    assert (await story.get("a"))["queue"] == "ruby-mail"


async def test_entries_without_a_jid_become_one_job_each(story: Story, there: ForeignQueue) -> None:
    await there.push(*[{"class": "K", "args": [1]}] * 3)
    assert await there.take() == _taken(3)
    jids = await story.pop(12, count=9)
    assert (len(set(jids)), {len(jid) for jid in jids}) == (3, {24})


ARGS = [
    "[1.0, 1e5, 12345678901234567890, -0]", "[[], {}, [[]], {\"a\":{}}]",
    '["]", "\\"]", "\\\\", "{"]', '[ "\\u00e9é\\/" ,\n\t1 ]', "[]",
    '[{"args":[2],"class":"No"}]', '["\\ud800"]', "[false]", "[null]", "[" * 900 + "]" * 900,
]  # fmt: skip


SHAPES = [
    '{"class":"K","args":%s,"jid":"a"}',
    ' {"jid" : "a", "x":{"args":[0]} ,"\\u0061rgs" :%s , "class":"K"} ',
]


@pytest.mark.parametrize("args", ARGS, ids=range(len(ARGS)))
@pytest.mark.parametrize("shape", SHAPES)
async def test_arguments_are_kept_byte_for_byte(
    story: Story, there: ForeignQueue, shape: str, args: str
) -> None:
    await there.push(shape % args)
    assert await there.take() == _taken(1)
    assert (await story.job("a"))["data"] == args


async def test_last_of_duplicate_arguments_counts(story: Story, there: ForeignQueue) -> None:
    await there.push('{"args":[1],"class":"K","jid":"a","args":[2.0]}')
    await there.take()
    assert (await story.job("a"))["data"] == "[2.0]"


SIMPLE = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"))
)
KEYS = st.sampled_from(["args", "class", "tags", '"', "\\", "é"])
JSON = st.recursive(
    SIMPLE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
MORE = st.dictionaries(st.text('abc"\\[]{},: é', max_size=4), JSON, max_size=3)


@given(args=st.lists(JSON, max_size=4), more=MORE, ascii=st.booleans())
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_arguments_are_found_at_any_position(
    redis_url: str, namespace: str, args: list[Any], more: dict[str, Any], ascii: bool
) -> None:
    after = {f"z{name}": value for name, value in more.items()}
    entry = json.dumps(
        {**more, "args": args, **after, "class": "K", "jid": "a"}, ensure_ascii=ascii
    )
    with SyncRedis.from_url(redis_url) as redis:
        redis.delete(f"{namespace}:j:a")
        redis.lpush(f"{namespace}-h:queue:q", entry)
        redis.eval(
            compose("import", namespace).text,
            1,
            namespace,
            f"{namespace}-h:",
            "",
            "10",
            "",
            "queue",
            "q",
            "right",
            "9",
        )
        assert (
            redis.hget(f"{namespace}:j:a", "data") == json.dumps(args, ensure_ascii=ascii).encode()
        )


SAID = [
    ({"retry": True}, 25),
    ({"retry": False}, 0),
    ({"retry": 3}, 3),
    ({}, 5),
    ({"retry": None}, 5),
]


@pytest.mark.parametrize(("said", "retries"), SAID, ids=str)
async def test_retries_are_those_of_the_source(
    story: Story, there: ForeignQueue, said: dict[str, Any], retries: int
) -> None:
    await there.push({"class": "K", "args": [], "jid": "a", **said})
    await there.take()
    job = await story.get("a")
    assert (job["retries"], job["remaining"]) == (retries, retries)


async def test_job_of_an_adapter_has_the_wrapped_class(story: Story, there: ForeignQueue) -> None:
    await there.push(
        {
            "class": "ActiveJob::QueueAdapters::SidekiqAdapter::JobWrapper",
            "wrapped": "Greet",
            "args": [{}],
            "jid": "a",
        }
    )
    await there.take()
    assert (await story.get("a"))["klass"] == "Greet"


async def test_scheduled_jobs_stay_scheduled(story: Story, there: ForeignQueue) -> None:
    await there.schedule(100.5, jid="late")
    await there.schedule(5, jid="due")
    assert await there.due(10) == _taken(2)
    assert [await story.state(jid) for jid in ("late", "due")] == ["scheduled", "waiting"]
    assert await story.pop(100.4, count=9) == ["due"]
    assert await story.pop(100.6, count=9) == ["late"]


async def test_retried_jobs_keep_their_failure_and_used_retries(
    story: Story, there: ForeignQueue
) -> None:
    failed = {
        "retry_count": 2,
        "error_class": "IOError",
        "error_message": 'no "route"',
        "failed_at": 1700000000123,
        "retry": 5,
    }
    await there.schedule(60, "retry", jid="a", **failed)
    assert await there.due(10, "retry") == _taken(1)
    job = await story.get("a")
    assert (job["state"], job["retries"], job["remaining"]) == ("scheduled", 5, 2)
    assert job["failure"] == {
        "group": "mail-IOError",
        "message": 'no "route"',
        "when": 1700000000,
        "worker": "",
    }
    assert await story.pop(61) == ["a"]


@pytest.mark.parametrize(
    ("retry", "used", "remaining"), [(5, 1, 4), (5, 2, 3), (5, 5, 0), (True, 1, 24)]
)
async def test_exq_counts_its_first_pending_retry_as_one(
    story: Story, there: ForeignQueue, retry: int | bool, used: int, remaining: int
) -> None:
    await there.schedule(
        60,
        "retry",
        jid="a",
        retry=retry,
        retry_count=used,
        error_message="no route",
        failed_at=50.5,
    )
    assert await there.due(10, "retry", first_retry=1) == _taken(1)
    job = await story.get("a")
    assert job["remaining"] == remaining
    assert job["failure"] == {
        "group": "mail-Error",
        "message": "no route",
        "when": 50,
        "worker": "",
    }


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"error_message": {"a": "b"}}, '{"a":"b"}'),
        ({"error_class": "E", "error_message": None}, ""),
        ({}, None),
    ],
    ids=str,
)
async def test_failure_has_the_fields_that_the_entry_has(
    story: Story, there: ForeignQueue, said: dict[str, Any], message: str | None
) -> None:
    await there.schedule(60, "retry", jid="a", retry_count=1, **said)
    assert await there.due(10, "retry") == _taken(1)
    assert (await story.get("a"))["failure"].get("message") == message


async def _node(
    there: ForeignQueue,
    node: str,
    beat: float | None,
    *entries: str,
    queue: str = "mail",
    info: bool = False,
) -> None:
    """Create a node of exq that has taken some entries."""
    for jid in entries:
        entry = json.dumps({"class": "Greet", "queue": queue, "args": [], "jid": jid})
        await there.story.ask("LPUSH", f"{there.prefix}queue:backup::{node}::{queue}", entry)
    if beat is not None:
        await there.story.ask("ZADD", f"{there.prefix}heartbeats", beat, node)
    if info:
        await there.story.ask("HSET", f"{there.prefix}{node}", "info", "{}")


async def test_jobs_of_a_dead_exq_node_are_imported(story: Story, there: ForeignQueue) -> None:
    await _node(there, "dead", 639.5, "a", "b")
    await _node(there, "dead", 639.5, "c", queue="post")
    await _node(there, "busy", 700, "d")
    await _node(there, "slow", 100, "e", info=True)  # heartbeats are less frequent than by default
    await _node(there, "silent", None, "f")  # a node without heartbeats may be alive
    given: dict[str, Any] = {"prefix": there.prefix, "into": "", "now": 1000}
    assert await ForeignQueuesCommands(story.store).import_dead(**given) == ["dead"]
    for node, taken in (("busy", 0), ("slow", 0), ("silent", 0), ("dead", 3)):
        assert await ForeignQueuesCommands(story.store).import_backup(
            **given, node=node, count=9, queues=("mail", "post")
        ) == _taken(taken)
    assert await story.pop(1001, count=9) == ["a", "b"] and await story.pop(1001, queue="post") == [
        "c"
    ]
    left = {
        key.decode().split("::")[1]
        for key in await story.ask("KEYS", f"{there.prefix}queue:backup*")
    }
    assert left == {"busy", "slow", "silent"}


async def test_backup_is_imported_in_batches(story: Story, there: ForeignQueue) -> None:
    await _node(there, "dead", 5, "a", "b", "c")
    given: dict[str, Any] = {
        "prefix": there.prefix,
        "into": "x-",
        "node": "dead",
        "queues": ("mail",),
        "count": 2,
    }
    assert await ForeignQueuesCommands(story.store).import_backup(**given, now=999) == _taken(
        2, more=True
    )
    assert await ForeignQueuesCommands(story.store).import_backup(**given, now=1000) == _taken(1)
    assert await story.pop(1001, queue="x-mail", count=9) == ["a", "b", "c"]


async def test_scheduled_jobs_of_other_queues_are_not_imported(
    story: Story, there: ForeignQueue
) -> None:
    for at, queue in enumerate(["other", "mail", "other", "mail", "other"]):
        await there.schedule(at, jid=f"{queue}{at}", queue=queue)
    assert await there.due(10, queues=("mail",), count=3) == {
        "taken": 1,
        "passed": 2,
        "refused": [],
        "more": True,
    }
    assert await there.due(10, queues=("mail",), offset=2) == _taken(1, passed=1)
    assert await there.story.ask("ZCARD", f"{there.prefix}schedule") == 3


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("not JSON", "entry is not a JSON object"),
        ("[1]", "entry is not a JSON object"),
        (b"\xff\x00", "entry is not a JSON object"),
        ('{"args":[],"jid":"a"}', "class is missing"),
        ('{"class":3,"args":[],"jid":"a"}', "class is missing"),
        ('{"class":"K","args":{},"jid":"a"}', "args is not a list"),
        ('{"class":"K","args":[],"jid":"a-history"}', "jid ends as a key of another job does"),
        ('{"class":"K","args":[],"jid":"a","retry":"often"}', "retry is not a number"),
        ('{"class":"K","args":[],"jid":"a","tags":[1]}', "tags has an entry that is not a string"),
    ],
    ids=str,
)
async def test_invalid_entry_is_set_aside_and_blocks_no_other(
    story: Story, there: ForeignQueue, entry: bytes | str, why: str
) -> None:
    await there.push(entry, {"class": "K", "args": [], "jid": "good"})
    answer = await there.take()
    assert (answer["taken"], [each["why"] for each in answer["refused"]]) == (1, [why])
    assert await story.state("good") == "waiting"
    (aside,) = await story.ask("LRANGE", story.key("x:rejected-imports"), 0, -1)
    kept = json.loads(aside.decode("utf-8", "surrogateescape"))
    assert kept["entry"].encode("utf-8", "surrogateescape") == (
        entry if isinstance(entry, bytes) else entry.encode()
    )
    assert (kept["source"], kept["when"], kept["score"]) == (f"{there.prefix}queue:mail", 10, None)


async def test_duplicate_entry_is_set_aside_and_the_existing_job_is_unchanged(
    story: Story, there: ForeignQueue
) -> None:
    await story.running("a")
    before = await story.get("a")
    await there.push({"class": "K", "args": [1], "jid": "a"})
    answer = await there.take()
    assert [each["why"] for each in answer["refused"]] == [EXISTS]
    assert await story.get("a") == before
    assert [(each["jid"], json.loads(each["entry"])["args"]) for each in await there.aside()] == [
        ("a", [1])
    ]


async def test_nothing_is_imported_at_the_memory_limit(story: Story, there: ForeignQueue) -> None:
    await there.push({"class": "K", "args": [], "jid": "a"}, "not JSON")
    await story.ask("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(QueueFull):
            await there.take()
    finally:
        await story.ask("CONFIG", "SET", "maxmemory", "0")
    assert (await there.left(), await story.get("a"), await there.aside()) == (2, None, [])


async def test_repeated_request_imports_nothing_more(story: Story, there: ForeignQueue) -> None:
    await there.push(*({"class": "K", "args": [], "jid": jid} for jid in "ab"))
    first = await there.take(count=1, request="c:1")
    assert await there.take(count=1, request="c:1") == first
    assert await there.left() == 1


async def test_call_imports_at_most_a_batch(there: ForeignQueue) -> None:
    await there.push(*({"class": "K", "args": ["x" * 100_000], "jid": f"big{n}"} for n in range(5)))
    assert await there.take() == _taken(3, more=True)
    await there.push(*({"class": "K", "args": [], "jid": f"{n}"} for n in range(150)), queue="post")
    assert await there.take(queue="post", count=1000) == _taken(100, more=True)


async def test_queues_of_the_source_are_listed(there: ForeignQueue) -> None:
    names: dict[str, Any] = {"prefix": there.prefix, "into": ""}
    assert await ForeignQueuesCommands(there.story.store).import_queues(**names) == []
    await there.push({}, queue="mail")
    await there.push({}, queue="post")
    assert set(await ForeignQueuesCommands(there.story.store).import_queues(**names)) == {
        "mail",
        "post",
    }


async def test_invalid_argument_is_refused_by_name(there: ForeignQueue) -> None:
    await there.push({"class": "K", "args": [], "jid": "a"})
    with pytest.raises(InvalidArgument, match="side"):
        await there.take(side="up")
    with pytest.raises(InvalidArgument, match="into"):
        await there.take(into="\n")
    assert await there.left() == 1
