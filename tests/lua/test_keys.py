"""Keys of a namespace: those of qless, and those that this library adds."""

import json
import re

import pytest

from aioqless.store import ScriptStore
from tests.lua.story import Story

KNOWN = [
    r"j:.+", r"j:.+-history", r"j:.+-dependencies", r"j:.+-dependents", r"r:.+",
    r"q:.+-(work|scheduled|locks|depends|recur)",
    "queues", "paused_queues", "workers", r"w:.+:jobs", "completed", "failures", r"f:.+",
    "tracked", r"t:.+", "tags", "config",
    r"s:(wait|run|stats):\d+:.+",
    r"x:(fence|import-counter|rejected-imports|ticks|paused-recurring|cron:.+|agenda|old-statistics|retention-rules|request:.+|noted-jids:.+|result:.+|name-lease:.+)",
    r"x:(unique|limit-running|held-back|rate-starts|skipped):.+",
]  # fmt: skip
OURS = {"x-put", "x-fence", "x-after", "x-lost"}
THEIRS = {
    "jid", "klass", "data", "priority", "tags", "state", "worker", "expires", "queue", "retries",
    "remaining", "time", "failure", "history",
    "spawned_from_jid", "scheduled", "grace",
}  # fmt: skip


async def _limited(story: Story) -> None:
    limits = [{"key": "k", "limit": 1, "rate": [5, 60]}]
    terms = json.dumps({"unique": "u", "until": "done", "limits": limits})
    await story.put("one", 20, queue="calls", constraints=terms)
    await story.put("two", 20, queue="calls", constraints=terms.replace('"u"', '"v"'))
    await story.configure(calls_rate_limit="100/60")
    await story.pop(21, queue="calls", count=5)


async def _use_all_keys(story: Story) -> None:
    """Run commands that use all kinds of keys."""
    await story.configure(heartbeat=30)
    await story.failed("bad", tags=["x"])
    await story.completed("done", 3, 4, 5)
    await story.running("a", 6, 7)
    await story.track("a", 8)
    await story.put("waiting", 8)
    await story.put("late", 9, delay=10)
    await story.put("held", 9, delay=10, depends=["a"])
    await story.recur("r", 9, offset=1, priority=2)
    await story.cron("night", 9, next=7200)
    await story.cron("paused", 9, next=7200)
    await story.store.recur_pause(jid="paused", now=9)
    await story.pop(10, queue="post")
    await story.peek(10)
    await story.pop(37, worker="bob", queue="mail", count=0)
    await _limited(story)
    await story.store.pause(queues=["post"])
    await story.put("many", 11, queue="post", depends=["waiting", "a"])


@pytest.fixture
async def used(story: Story) -> Story:
    await _use_all_keys(story)
    return story


async def test_every_key_is_documented(used: Story) -> None:
    keys = [
        key.decode().removeprefix(f"{used.namespace}:")
        for key in await used.ask("KEYS", used.key("*"))
    ]
    assert len(keys) > 30
    assert [key for key in keys if not any(re.fullmatch(known, key) for known in KNOWN)] == []


async def test_nothing_is_written_outside_the_namespace(story: Story) -> None:
    async def elsewhere() -> set[bytes]:  # other tests have keys that are not UTF-8
        own = f"{story.namespace}:".encode()
        return {key for key in await story.ask("KEYS", "*") if not key.startswith(own)}

    before = await elsewhere()
    await _use_all_keys(story)
    assert await elsewhere() <= before


async def test_only_kept_replies_and_rate_counters_expire(
    used: Story,
) -> None:
    expiring = [
        key.decode()
        for key in await used.ask("KEYS", used.key("*"))
        if await used.ask("TTL", key) != -1
    ]
    assert expiring
    assert [
        key for key in expiring if ":x:request:" not in key and ":x:rate-starts:" not in key
    ] == []


async def test_fields_of_a_job_are_those_of_qless_and_two_of_ours(used: Story) -> None:
    for jid in ("bad", "done", "a", "waiting", "late", "held", "r-1", "many"):
        fields = set(await used.job(jid))
        assert fields <= THEIRS | OURS
        must = {
            "jid",
            "klass",
            "state",
            "queue",
            "priority",
            "retries",
            "remaining",
            "data",
            "tags",
            "time",
        }
        assert must <= fields, "without these a peer could not read the job"


async def test_namespaces_share_no_keys(story: Story) -> None:
    odd = Story(ScriptStore(story.store.connection, f"{{{story.namespace}'s \\ ns}}"), story.redis)
    await odd.running("a")
    assert await odd.complete("a", 2) == "complete"
    assert await story.get("a") is None
    assert {"j:a", "completed"} <= {
        key.decode().split(":", 1)[1] for key in await story.ask("KEYS", "{*")
    }
