"""No call does more than a fixed amount of work, whatever the sizes; what it leaves is finished by later calls, nothing forgotten.

Work is counted in Redis commands that a call's script makes. The usual and the longest time are printed (`pytest -s`), for people.
With AIOQLESS_FULL=1 the sizes are those of a bad day.
"""

import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from aioqless.errors import InvalidArgument, WrongState

from .story import Story

FULL = os.environ.get("AIOQLESS_FULL") == "1"
MANY = 100_000 if FULL else 3_000
COMPLETED = 300_000 if FULL else 6_000
AN_INTERVAL_LONG = 86_400 if FULL else 3_000
MOST = 1_000
A_MOMENT = 1_700_000_000
FAILURE = '{"group":"typo","message":"","when":#,"worker":""}'

# Jobs made as a peer would have, thousands at a time.
_CROWD = """
local ns, prefix, first, last, place, score, step = unpack(ARGV, 1, 7)
local fields = {unpack(ARGV, 8)}
for i = first, last do
  local jid = prefix .. string.format('%d', i)
  fields[#fields] = string.gsub(ARGV[#ARGV], '#', string.format('%d', i))
  redis.call('HSET', ns .. ':j:' .. jid, 'jid', jid, unpack(fields))
  redis.call('RPUSH', ns .. ':j:' .. jid .. '-history', '[0,"put",{"q":"mail"}]')
  if string.find(place, '^f:') then
    redis.call('LPUSH', ns .. ':' .. place, jid)
  elseif place ~= '' then
    redis.call('ZADD', ns .. ':' .. place, score + i * step, jid)
  end
end
"""
_MEMBERS = "for i = ARGV[1], ARGV[2] do redis.call('SADD', KEYS[1], ARGV[3] .. string.format('%d', i)) end"
_EACH_HAS = "for i = ARGV[1], ARGV[2] do redis.call('SADD', KEYS[1] .. string.format('%d', i) .. ARGV[3], ARGV[4]) end"


class Gauge:
    """Calls commands, and keeps how many Redis commands the busiest call made and how long the server worked on each, in microseconds."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.most = 0
        self.took: list[int] = []

    async def __call__(self, command: str, word: str | None = None, /, **arguments: Any) -> Any:
        await self.story.ask("CONFIG", "RESETSTAT")
        before = await self._worked()
        try:
            return await self.story.scripts(command, word, **arguments)
        finally:
            counted = await self.story.redis.info("commandstats")
            self.took.append(round(await self._worked() - before))
            ours = ("cmdstat_eval", "cmdstat_script", "cmdstat_config", "cmdstat_info", "cmdstat_client")
            self.most = max(self.most, sum(each["calls"] for name, each in counted.items() if not name.startswith(ours)))

    async def _worked(self) -> float:
        """The server's own time, whoever else is busy on its machine."""
        used = await self.story.redis.info("cpu")
        return 1e6 * (float(used["used_cpu_user_main_thread"]) + float(used["used_cpu_sys_main_thread"]))


@pytest.fixture
def namespace() -> str:
    """One for all, so that the scripts are made once."""
    return "bounds"


@pytest.fixture
async def gauge(story: Story, request: pytest.FixtureRequest) -> AsyncIterator[Gauge]:
    await story.redis.flushdb()
    gauge = Gauge(story)
    yield gauge
    took = sorted(gauge.took)
    print(f"\n{request.node.name}: {len(took)} calls, at most {gauge.most} commands; {took[len(took) // 2]} µs, at most {took[-1]} µs")
    await story.redis.flushdb(asynchronous=True)


async def crowd(
    story: Story,
    size: int,
    place: str,
    state: str,
    *,
    prefix: str = "j",
    score: float = 0,
    step: float = 0,
    queue: str = "mail",
    **more: Any,
) -> None:
    """`size` jobs in one state, all in one set or list. A # in the last field stands for the job's number."""
    usual = {"klass": "K", "data": "{}", "priority": 0, "tags": "[]", "worker": "", "expires": 0, "retries": 5, "remaining": 5, "time": 0}
    fields = usual | {"state": state, "queue": queue} | more
    flat = [part for field in fields.items() for part in field]
    for first in range(0, size, 5_000):
        last = min(first + 5_000, size) - 1
        await story.ask("EVAL", _CROWD, 0, story.namespace, prefix, first, last, place, score, step, *flat)
    if queue:
        await story.change("ZADD", "queues", 0, queue)


async def bind(story: Story, size: int, *, dependents: bool) -> None:
    """`hub` has all of a crowd for dependents, or for dependencies."""
    mine, theirs = ("-dependents", "-dependencies") if dependents else ("-dependencies", "-dependents")
    for first in range(0, size, 5_000):
        last = min(first + 5_000, size) - 1
        await story.ask("EVAL", _MEMBERS, 1, story.key(f"j:hub{mine}"), first, last, "j")
        await story.ask("EVAL", _EACH_HAS, 1, story.key("j:j"), first, last, theirs, "hub")


async def count(story: Story, name: str) -> int:
    """How many a set, sorted set or list has."""
    kind = (await story.ask("TYPE", story.key(name))).decode()
    size = {"zset": "ZCARD", "set": "SCARD", "list": "LLEN", "none": "EXISTS", "hash": "HLEN"}[kind]
    return int(await story.ask(size, story.key(name)))


async def is_sound(story: Story, at: float) -> bool:
    cursor = ""
    while cursor != "0":
        reply = await story.scripts("check", now=at, cursor=cursor, budget=10_000)
        assert reply["found"] == []
        cursor = reply["cursor"]
    return True


# What is asked for


@pytest.mark.parametrize("wanted", [1, 10, 1_000, 100_000])
async def test_pop_hands_out_what_is_wanted_but_no_more_than_a_thousand(story: Story, gauge: Gauge, wanted: int) -> None:
    size = min(MANY, 20 * wanted)
    await crowd(story, size, "q:mail-work", "waiting", step=-1e-6)
    seen: list[str] = []
    while jobs := await gauge("pop", queue="mail", worker="ann", count=wanted, now=10):
        assert len(jobs) <= min(wanted, MOST)
        seen += [job["jid"] for job in jobs]
    assert len(seen) == len(set(seen)) == size
    assert gauge.most <= 150 + 13 * min(wanted, MOST)
    assert await is_sound(story, 10)


async def test_jobs_with_long_lives_behind_them_are_handed_out_at_a_bounded_cost(story: Story, gauge: Gauge) -> None:
    await crowd(story, MOST, "q:mail-work", "waiting")
    for number in range(MOST):
        events = ['[1,"popped",{"worker":"ann"}]'] * 100
        await story.change("RPUSH", f"j:j{number}-history", *events)
    jobs = await gauge("pop", queue="mail", worker="ann", count=MOST, now=10)
    assert [(len(job["history"]), job["history"][-1]["when"], job["history_total"]) for job in jobs] == [(10, 10, 100)] * MOST
    assert len((await gauge("get", jid="j0"))["history"]) == 100
    assert gauge.most <= 15 * MOST


async def test_a_person_who_skipped_many_is_served_at_a_bounded_cost(story: Story, gauge: Gauge) -> None:
    await crowd(story, MANY, "q:mail-work", "waiting", step=-1e-6)
    for number in range(300):
        await story.change("ZADD", "x:skipped:ada", number, f"j{number}")
    given = {"queue": "mail", "person": "ada", "worker": "ada", "limit": 60}
    assert (await gauge("reserve", **given, now=10))["job"]["jid"] == "j201"  # of the first 201, each was set aside
    await story.scripts("skip", jid="j201", person="ada", worker="ada", now=11)
    assert await count(story, "x:skipped:ada") == 200
    assert gauge.most <= 150 + 5 * 201
    assert await count(story, "q:mail-work") == MANY
    assert await is_sound(story, 12)


@pytest.mark.parametrize("wanted", [1, 1_000, 100_000])
async def test_peek_shows_what_is_wanted_but_no_more_than_a_thousand(story: Story, gauge: Gauge, wanted: int) -> None:
    await crowd(story, MANY, "q:mail-work", "waiting", step=-1e-6)
    for offset in (0, MANY - 500, MANY):
        shown = await gauge("peek", queue="mail", count=wanted, now=10, offset=offset)
        assert len(shown) == min(wanted, MOST, MANY - offset)
    assert gauge.most <= 50 + 10 * min(wanted, MOST)


@pytest.mark.parametrize("wanted", [1, 1_000, 100_000])
async def test_unfail_moves_what_is_wanted_but_no_more_than_a_thousand(story: Story, gauge: Gauge, wanted: int) -> None:
    size = min(MANY, 20 * wanted)
    await crowd(story, size, "f:typo", "failed", failure=FAILURE)
    await story.change("SADD", "failures", "typo")
    moved = 0
    while done := await gauge("unfail", queue="mail", group="typo", count=wanted, now=10):
        assert done <= min(wanted, MOST)
        moved += done
    assert moved == await count(story, "q:mail-work") == size
    assert gauge.most <= 50 + 10 * min(wanted, MOST)
    assert await is_sound(story, 10)


@pytest.mark.parametrize(
    ("command", "arguments", "place", "state"),
    [
        (("jobs",), {"state": "waiting", "queue": "mail", "now": 1}, "q:mail-work", "waiting"),
        (("jobs",), {"state": "running", "queue": "mail", "now": 0}, "q:mail-locks", "running"),
        (("jobs",), {"state": "stalled", "queue": "mail", "now": 1e9}, "q:mail-locks", "running"),
        (("jobs",), {"state": "scheduled", "queue": "mail", "now": 0}, "q:mail-scheduled", "scheduled"),
        (("jobs",), {"state": "depends", "queue": "mail", "now": 0}, "q:mail-depends", "depends"),
        (("jobs",), {"state": "complete", "now": 0}, "completed", "complete"),
        (("tag", "get"), {"tag": "x"}, "t:x", "waiting"),
        (("failed",), {"group": "typo"}, "f:typo", "failed"),
    ],
)
async def test_a_listing_has_no_more_than_a_thousand_in_a_page(
    story: Story, gauge: Gauge, command: tuple[str, ...], arguments: dict[str, Any], place: str, state: str
) -> None:
    await crowd(story, MANY, place, state, score=1, step=1)
    paging = ("start", "limit") if command == ("failed",) else ("offset", "count")
    for size, offset, listed in ((None, 0, 25), (100_000, 0, MOST), (100_000, MANY - 10, 10), (100_000, MANY, 0)):
        page = await gauge(*command, **arguments, **dict(zip(paging, (offset, size), strict=True)))
        assert len(page if isinstance(page, list) else page["jobs"]) == listed
    assert gauge.most <= 20 + 10 * MOST


async def test_queues_workers_and_groups_are_listed_in_bounded_portions(story: Story, gauge: Gauge) -> None:
    for first in range(0, MANY, 1_000):
        names = [f"n{number}" for number in range(first, first + 1_000)]
        scored = [part for name in names for part in (1, name)]
        await story.change("ZADD", "queues", *scored)
        await story.change("ZADD", "workers", *scored)
        await story.change("SADD", "failures", *names)
    assert len(await gauge("queues", now=1)) == MOST
    assert len(await gauge("queues", now=1, offset=MANY - 10, count=100_000)) == 10
    assert len(await gauge("workers", now=1)) == MOST
    assert len(await gauge("failed")) == min(MANY, 10_000)
    assert gauge.most <= 50 + 10 * MOST


async def test_a_job_tells_of_a_thousand_dependents_and_how_many_there_are(story: Story, gauge: Gauge) -> None:
    await story.put("hub", 0)
    await crowd(story, MANY, "q:mail-depends", "depends")
    await bind(story, MANY, dependents=True)
    job = await gauge("get", jid="hub")
    assert (len(job["dependents"]), job["dependents_total"]) == (MOST, MANY)
    assert gauge.most <= 10


# What is too much for one call


def _batch(size: int, **each: Any) -> dict[str, Any]:
    return {"now": 1, "batch": [{"jid": f"j{number}", **each} for number in range(size)]}


MAIL = {"queue": "mail"}
LISTS: dict[str, tuple[tuple[str, ...], Callable[[int], dict[str, Any]]]] = {
    "put_many": (("put_many",), lambda size: {"queue": "mail", **_batch(size, klass="K", data="{}")}),
    "complete_many": (("complete_many",), lambda size: {"worker": "ann", **_batch(size, queue="mail")}),
    "heartbeat_many": (("heartbeat_many",), lambda size: {"worker": "ann", **_batch(size)}),
    "pop_many": (("pop_many",), lambda size: {"worker": "ann", "count": 1, "now": 1, "order": "ordered", "batch": [MAIL] * size}),
    "cancel": (("cancel",), lambda size: {"jids": [f"j{number}" for number in range(size)]}),
    "multiget": (("multiget",), lambda size: {"jids": [f"j{number}" for number in range(size)]}),
    "timeout": (("timeout",), lambda size: {"now": 1, "jids": ["running"] * size}),
    "deregister": (("deregister",), lambda size: {"workers": [f"w{number}" for number in range(size)]}),
    "pause": (("pause",), lambda size: {"queues": [f"q{number}" for number in range(size)]}),
    "unpause": (("unpause",), lambda size: {"queues": [f"q{number}" for number in range(size)]}),
    "forget": (("forget",), lambda size: {"queues": [f"q{number}" for number in range(size)]}),
    "depends on": (("depends", "on"), lambda size: {"jid": "held", "now": 1, "jids": [f"j{number}" for number in range(size)]}),
    "depends off": (("depends", "off"), lambda size: {"jid": "held", "now": 1, "jids": [f"j{number}" for number in range(size)]}),
    "tag add": (("tag", "add"), lambda size: {"jid": "held", "now": 1, "tags": [f"t{number}" for number in range(size)]}),
    "tag remove": (("tag", "remove"), lambda size: {"jid": "held", "now": 1, "tags": [f"t{number}" for number in range(size)]}),
    "track": (("track", "track"), lambda size: {"jid": "held", "now": 1, "tags": [f"t{number}" for number in range(size)]}),
    "recur tag": (("recur", "tag"), lambda size: {"jid": "hourly", "tags": [f"t{number}" for number in range(size)]}),
    "recur update": (("recur", "update"), lambda size: {"jid": "hourly", "pairs": ["priority", 1] * (size // 2) + ["klass"] * (size % 2)}),
    "declare off": (("declare", "off"), lambda size: {"jids": [f"j{number}" for number in range(size)]}),
    "tick": (("tick",), lambda size: {"now": 1, **_batch(size, tick=1, at=1, next=2)}),
    "put's tags": (("put",), lambda size: _put(tags=[f"t{number}" for number in range(size)])),
    "put's depends": (("put",), lambda size: _put(depends=[f"j{number}" for number in range(size)])),
}  # fmt: skip


def _put(**more: Any) -> dict[str, Any]:
    return {"queue": "mail", "jid": "new", "klass": "K", "data": "{}", "now": 1, "delay": 0, **more}


@pytest.mark.parametrize("name", LISTS)
async def test_a_list_of_a_thousand_is_taken_and_a_longer_one_refused(story: Story, gauge: Gauge, name: str) -> None:
    await story.running("running")
    await story.put("free", 1)
    await story.put("held", 1, depends=["free"])
    await story.recur("hourly", 1)
    words, arguments = LISTS[name]
    for size in (MOST + 1, 5_000):
        async with story.refused(InvalidArgument):
            await gauge(*words, **arguments(size))
        assert gauge.most <= 20
    if name == "timeout":
        async with story.refused(WrongState, jid="free"):
            await gauge("timeout", now=1, jids=["running"] * (MOST - 1) + ["free"])
    else:
        await gauge(*words, **arguments(MOST))


async def test_a_job_has_no_more_than_a_thousand_tags(story: Story, gauge: Gauge) -> None:
    await story.put("a", 0)
    await story.recur("hourly", 0)
    tags = [f"t{number}" for number in range(MOST)]
    for words, given in ((("tag", "add"), {"jid": "a", "now": 1}), (("recur", "tag"), {"jid": "hourly"})):
        assert await gauge(*words, **given, tags=tags) == tags
        assert await gauge(*words, **given, tags=tags) == tags
        async with story.refused(InvalidArgument, argument="tags"):
            await gauge(*words, **given, tags=["another"])
    async with story.refused(InvalidArgument, argument="tags"):
        await gauge("track", "track", jid="a", now=1, tags=["another"])
    assert gauge.most <= 2_100


async def test_all_lists_of_a_batch_together_are_bounded(story: Story, gauge: Gauge) -> None:
    tags = [f"t{number}" for number in range(500)]
    jobs = [{"jid": f"j{number}", "klass": "K", "data": "{}", "tags": tags} for number in range(100)]
    answers = await gauge("put_many", queue="mail", now=1, batch=jobs)
    assert answers[:20] == [f"j{number}" for number in range(20)]
    assert all(isinstance(answer, InvalidArgument) for answer in answers[20:])
    assert gauge.most <= 21_000
    assert await gauge("put_many", queue="mail", now=1, batch=jobs[20:40]) == [f"j{number}" for number in range(20, 40)]


# What has piled up


async def test_completed_jobs_that_are_due_go_a_few_at_a_time_until_all_are_gone(story: Story, gauge: Gauge) -> None:
    await crowd(story, COMPLETED, "completed", "complete", queue="", step=0.001, tags='["x"]')
    await crowd(story, COMPLETED, "t:x", "complete", queue="", tags='["x"]')
    await story.change("ZADD", "tags", COMPLETED, "x")
    left = COMPLETED
    for number in range(COMPLETED):
        jids = [f"new{number}-{each}" for each in range(20)] if number else ["new"]
        await story.scripts("put_many", queue="mail", now=A_MOMENT, batch=[{"jid": jid, "klass": "K", "data": "{}"} for jid in jids])
        await story.pop(A_MOMENT, count=20)
        if number:
            await gauge("complete_many", worker="ann", now=A_MOMENT, batch=[{"jid": jid, "queue": "mail"} for jid in jids])
        else:
            await gauge("complete", jid="new", worker="ann", queue="mail", now=A_MOMENT)
        before, left = left, await count(story, "t:x")
        assert 0 < before - left <= 20 + 2 * len(jids)
        if number == 20:
            await story.configure(jobs_history_count=10)  # from here on there are too many, too
        if left == 0:
            break
    assert await story.scores("t:x") == {}
    assert await story.scores("tags") == {"x": 0}
    assert not [key async for key in story.redis.scan_iter(story.key("j:j*"), 10_000)]
    assert gauge.most <= 60 * 9 + 20 * 15 + 500
    await story.running("last", A_MOMENT, A_MOMENT)
    for _ in range(COMPLETED // 20):
        await story.complete("last", A_MOMENT)
        if await count(story, "completed") == 10:
            break
        await story.running("last", A_MOMENT, A_MOMENT)
    assert await count(story, "completed") == 10
    assert await is_sound(story, A_MOMENT)


async def test_the_dependents_of_a_job_are_released_a_portion_at_a_time_until_all_are(story: Story, gauge: Gauge) -> None:
    await crowd(story, MANY, "q:mail-depends", "depends")
    await story.running("hub")
    await bind(story, MANY, dependents=True)
    assert await is_sound(story, 2)
    await gauge("complete", jid="hub", worker="ann", queue="mail", now=2)
    released = await count(story, "q:mail-work")
    assert released == 400
    assert await is_sound(story, 3)
    while released < MANY:
        await gauge("pop", queue="elsewhere", worker="ann", count=1, now=3)
        before, released = released, await count(story, "q:mail-work")
        assert 0 < released - before <= 200
    assert gauge.most <= 400 * 12 + 100
    assert not await story.exists("x:todo")
    assert await is_sound(story, 4)


async def test_a_job_that_comes_back_while_its_dependents_are_released_may_have_new_ones(story: Story, gauge: Gauge) -> None:
    size = 1_000
    await crowd(story, size, "q:mail-depends", "depends")
    await story.running("hub")
    await bind(story, size, dependents=True)
    await gauge("complete", jid="hub", worker="ann", queue="mail", now=2)
    await story.put("hub", 3)
    await story.put("new", 3, depends=["hub"])
    await story.put("j7", 3, queue="post", depends=["hub"])
    for _ in range(6):
        await gauge("pop", queue="elsewhere", worker="ann", count=1, now=3)
        assert await is_sound(story, 3)
    assert await story.members("j:hub-dependents") == {"new", "j7"}
    assert await count(story, "q:mail-work") == size
    assert (await story.state("new"), await story.state("j7")) == ("depends", "depends")


async def test_many_completions_of_one_call_release_a_bounded_number_of_dependents(story: Story, gauge: Gauge) -> None:
    jobs = 100
    for number in range(jobs):
        await crowd(story, 100, "q:mail-depends", "depends", prefix=f"{number}-")
        await story.ask("EVAL", _MEMBERS, 1, story.key(f"j:hub{number}-dependents"), 0, 99, f"{number}-")
        await story.ask("EVAL", _EACH_HAS, 1, story.key(f"j:{number}-"), 0, 99, "-dependencies", f"hub{number}")
    await crowd(story, jobs, "q:mail-work", "waiting", prefix="hub")
    await story.pop(1, count=jobs)
    batch = [{"jid": f"hub{number}", "queue": "mail"} for number in range(jobs)]
    assert await gauge("complete_many", worker="ann", now=2, batch=batch) == ["complete"] * jobs
    assert await count(story, "q:mail-work") == 1_000
    assert await is_sound(story, 3)
    for _ in range(9_000 // 200):
        await gauge("peek", queue="elsewhere", count=1, now=3)
    assert await count(story, "q:mail-work") == 100 * jobs
    assert gauge.most <= 1_000 * 12 + jobs * 30
    assert await is_sound(story, 4)


async def test_many_completions_with_one_dependent_each_release_them_all(story: Story, gauge: Gauge) -> None:
    jobs = 500
    await crowd(story, jobs, "q:mail-depends", "depends", prefix="dependent")
    await crowd(story, jobs, "q:mail-work", "waiting", prefix="hub")
    for number in range(jobs):
        await story.change("SADD", f"j:hub{number}-dependents", f"dependent{number}")
        await story.change("SADD", f"j:dependent{number}-dependencies", f"hub{number}")
    await story.pop(1, count=jobs)
    await gauge("complete_many", worker="ann", now=2, batch=[{"jid": f"hub{number}", "queue": "mail"} for number in range(jobs)])
    assert await count(story, "q:mail-work") == jobs
    assert not await story.exists("x:todo")


async def test_a_cancelled_jobs_dependencies_are_unlinked_a_portion_at_a_time_until_all_are(story: Story, gauge: Gauge) -> None:
    await crowd(story, MANY, "q:mail-work", "waiting")
    await story.put("hub", 0, queue="post", depends=["j0"])
    await bind(story, MANY, dependents=False)
    assert await is_sound(story, 1)
    assert await gauge("cancel", jids=["hub"]) == ["hub"]
    assert await is_sound(story, 1)
    for _ in range(MANY // 200):
        await gauge("pop", queue="elsewhere", worker="ann", count=1, now=3)
    assert not await story.exists("x:todo")
    assert not [key async for key in story.redis.scan_iter(story.key("*-dependents"), 10_000)]
    assert gauge.most <= 500
    assert await is_sound(story, 4)


async def test_a_job_with_very_many_dependents_is_not_cancelled_before_them(story: Story, gauge: Gauge) -> None:
    await story.put("hub", 0)
    await crowd(story, 20_000, "q:mail-depends", "depends")
    await bind(story, 20_000, dependents=True)
    with pytest.raises(InvalidArgument):
        await gauge("cancel", jids=["hub", *(f"j{number}" for number in range(999))])
    assert gauge.most <= 10
    for first in range(0, 20_000, 1_000):
        assert len(await gauge("cancel", jids=[f"j{number}" for number in range(first, first + 1_000)])) == 1_000
    assert await gauge("cancel", jids=["hub"]) == ["hub"]
    assert not await story.exists("q:mail-depends")
    assert gauge.most <= 1_000 * 20 + 100


async def test_dependencies_are_replaced_only_while_they_are_few(story: Story, gauge: Gauge) -> None:
    await crowd(story, MANY, "q:mail-work", "waiting")
    await story.put("hub", 0, depends=["j0"])
    await bind(story, MANY, dependents=False)
    with pytest.raises(InvalidArgument):
        await gauge("put", **_put(depends=["j1"]) | {"jid": "hub"})
    await gauge("put", **_put() | {"jid": "hub"})
    assert await story.state("hub") == "depends"
    assert gauge.most <= 50
    await gauge("depends", "off", jid="hub", jids=["all"], now=2)
    assert await story.state("hub") == "waiting"


@pytest.mark.parametrize("order", ["oldest first", "newest first"])
async def test_failed_jobs_of_a_large_group_are_cancelled_at_its_ends(story: Story, gauge: Gauge, order: str) -> None:
    await crowd(story, MANY, "f:typo", "failed", failure=FAILURE)
    await story.change("SADD", "failures", "typo")
    numbers = range(1_000) if order == "oldest first" else range(MANY - 1, MANY - 1_001, -1)
    assert len(await gauge("cancel", jids=[f"j{number}" for number in numbers])) == 1_000
    assert await count(story, "f:typo") == MANY - 1_000
    assert gauge.most <= 1_000 * 18 + 100
    assert await is_sound(story, 1)


# What has become due


async def test_a_template_of_ours_that_slept_a_day_makes_one_instance(story: Story, gauge: Gauge) -> None:
    await story.recur("hourly", A_MOMENT, interval=1)
    assert len(await gauge("pop", queue="mail", worker="ann", count=100, now=A_MOMENT + AN_INTERVAL_LONG)) == 1
    assert await gauge("pop", queue="mail", worker="ann", count=100, now=A_MOMENT + AN_INTERVAL_LONG) == []
    assert await story.scores("q:mail-recur") == {"hourly": A_MOMENT + AN_INTERVAL_LONG + 1}
    assert gauge.most <= 250


async def test_a_peers_template_makes_up_for_all_it_slept_a_portion_at_a_time(story: Story, gauge: Gauge) -> None:
    await story.recur("hourly", A_MOMENT, interval=1, backlog=0)
    times = []
    while jobs := await gauge("pop", queue="mail", worker="ann", count=700, now=A_MOMENT + AN_INTERVAL_LONG):
        assert len(jobs) <= 700
        times += [job["history"][0]["when"] for job in jobs]
    assert times == [A_MOMENT + second for second in range(AN_INTERVAL_LONG + 1)]
    assert gauge.most <= 200 + 25 * 700
    assert await is_sound(story, A_MOMENT + AN_INTERVAL_LONG)


async def test_ticks_are_told_a_portion_at_a_time(story: Story, gauge: Gauge) -> None:
    for number in range(150):
        await story.cron(f"r{number:03}", 0, next=number + 1)
    first = await gauge("tick", now=1000, batch=[])
    assert [each["jid"] for each in first["due"]] == [f"r{number:03}" for number in range(100)]
    made = await gauge(
        "tick", now=1000, batch=[{"jid": each["jid"], "tick": each["tick"], "at": 999, "next": 2000} for each in first["due"]]
    )
    assert len(made["made"]) == 100
    assert [each["jid"] for each in made["due"]] == [f"r{number:03}" for number in range(100, 150)]
    assert gauge.most <= 2_000


async def test_templates_are_listed_a_portion_at_a_time(story: Story, gauge: Gauge) -> None:
    for number in range(30):
        await story.cron(f"r{number:03}", 0, next=number + 1)
    assert len(await gauge("recurring")) == 25
    assert len(await gauge("recurring", count=5_000)) == 30
    assert gauge.most <= 200


async def test_a_template_with_a_backlog_makes_up_for_so_many(story: Story, gauge: Gauge) -> None:
    await story.recur("hourly", A_MOMENT, interval=1, backlog=50)
    jobs = await gauge("pop", queue="mail", worker="ann", count=1_000, now=A_MOMENT + AN_INTERVAL_LONG)
    assert [job["history"][0]["when"] - A_MOMENT for job in jobs] == list(range(AN_INTERVAL_LONG - 50, AN_INTERVAL_LONG + 1))
    assert gauge.most <= 200 + 25 * 51


async def test_a_template_put_on_again_passes_over_the_jids_in_use_and_takes_no_jobs_place(story: Story, gauge: Gauge) -> None:
    await story.recur("hourly", A_MOMENT, interval=1)
    await crowd(story, 1_001, "q:mail-work", "waiting", prefix="hourly-", data='"older"')
    for _ in range(11):
        await gauge("peek", queue="mail", count=1, now=A_MOMENT)
    assert gauge.most <= 350
    assert await count(story, "q:mail-work") == 1_002
    assert (await story.job("hourly-1001"))["data"] == "{}"
    assert (await story.job("hourly-1000"))["data"] == '"older"'


async def test_many_due_jobs_are_moved_as_they_are_wanted(story: Story, gauge: Gauge) -> None:
    await crowd(story, MANY, "q:mail-scheduled", "scheduled", score=1, step=0.001)
    at = A_MOMENT
    assert len(await gauge("pop", queue="mail", worker="ann", count=10, now=at)) == 10
    assert await count(story, "q:mail-scheduled") == MANY - 10
    assert gauge.most <= 10 * 20 + 150
    popped = 10
    while jobs := await gauge("pop", queue="mail", worker="ann", count=1_000, now=at):
        popped += len(jobs)
    assert popped == MANY
    assert gauge.most <= 1_000 * 18 + 150
    assert await is_sound(story, at)


async def test_many_lapsed_locks_are_seen_to_as_jobs_are_wanted(story: Story, gauge: Gauge) -> None:
    size = min(MANY, 20_000)
    await crowd(story, size, "q:mail-locks", "running", score=1, step=0.001, worker="ann", expires=1, remaining=0)
    await crowd(story, size, "w:ann:jobs", "running", worker="ann", expires=1, remaining=0)
    at = 1_000_000.0
    assert await gauge("pop", queue="mail", worker="bob", count=10, now=at) == []
    assert len([jid for jid in await story.scores("q:mail-locks") if await story.change("HEXISTS", f"j:{jid}", "grace")]) == 10
    assert gauge.most <= 10 * 20 + 150
    for _ in range(size // 1_000 + 1):
        await gauge("pop", queue="mail", worker="bob", count=1_000, now=at)
    for _ in range(size // 1_000 + 1):
        await gauge("pop", queue="mail", worker="bob", count=1_000, now=at + 11)
    assert await story.scripts("failed") == {"failed-retries-mail": size}
    assert not await story.exists("q:mail-locks")
    assert gauge.most <= 1_000 * 25 + 150
    assert await is_sound(story, at)


async def test_workers_that_were_silent_are_forgotten_a_few_at_a_time(story: Story, gauge: Gauge) -> None:
    for number in range(100):
        await story.change("ZADD", "workers", number, f"w{number}")
        await story.change("ZADD", f"w:w{number}:jobs", 1, f"j{number}")
    for left in range(90, -1, -10):
        await gauge("pop", queue="mail", worker="ann", count=1, now=A_MOMENT)
        assert await count(story, "workers") == left + 1
    assert not [key async for key in story.redis.scan_iter(story.key("w:*"))]
    assert gauge.most <= 80


# What is old


async def test_statistics_of_years_are_pruned_a_month_at_a_time_until_all_are(story: Story, gauge: Gauge) -> None:
    today = A_MOMENT - A_MOMENT % 86_400
    days = [today - 86_400 * back for back in range(1, 3_000 if FULL else 400)]
    for day in days:
        for kind in ("wait", "run"):
            await story.change("HSET", f"s:{kind}:{day}:mail", "total", 3, "mean", 1.5, "vk", 2, "s1", 2, "s2", 1, "s-7", 1)
        await story.change("HSET", f"s:stats:{day}:mail", "failures", 1)
    await crowd(story, 3_000, "q:mail-work", "waiting")
    for _ in range(30):
        jobs = await gauge("pop", queue="mail", worker="ann", count=100, now=A_MOMENT)
        batch = [{"jid": job["jid"], "queue": "mail"} for job in jobs]
        await gauge("complete_many", worker="ann", now=A_MOMENT, batch=batch)
    for _ in range(100):
        await crowd(story, 50, "q:mail-work", "waiting", prefix="more")
        await gauge("pop", queue="mail", worker="ann", count=50, now=A_MOMENT)
    left = [key.decode().split(":")[2:4] async for key in story.redis.scan_iter(story.key("s:*"), 10_000)]
    assert {int(day) for _, day in left} == {today - 86_400 * back for back in range(31)}
    for back in range(1, 31):
        kept = await story.fields(f"s:wait:{today - 86_400 * back}:mail")
        assert kept == {"total": "3", "mean": "1.5", "vk": "2"} | ({"s1": "2", "s2": "1", "s-7": "1"} if back <= 7 else {})
    assert gauge.most <= 60 * 6 + 100 * 20 + 300


async def test_a_job_that_failed_on_a_day_that_is_pruned_leaves_no_counter_behind(story: Story, gauge: Gauge) -> None:
    await story.failed("a")
    await story.change("DEL", "s:stats:0:mail")
    assert await gauge("unfail", queue="mail", group="typo", now=A_MOMENT) == 1
    assert not await story.exists("s:stats:0:mail")


async def test_many_queues_at_once_prune_no_more_than_one(story: Story, gauge: Gauge) -> None:
    for number in range(300):
        await story.put(f"j{number}", A_MOMENT, queue=f"q{number}")
    batch = [{"queue": f"q{number}"} for number in range(300)]
    assert len((await gauge("pop_many", worker="ann", count=300, now=A_MOMENT, order="rotation", batch=batch))[0]) == 300
    assert gauge.most <= 300 * 45 + 60 * 6


async def test_a_turn_of_many_empty_queues_costs_little(story: Story, gauge: Gauge) -> None:
    await crowd(story, 2_000, "q:last-work", "waiting", queue="last")
    batch = [{"queue": f"q{number}"} for number in range(MOST - 1)] + [{"queue": "last"}]
    for order in ("rotation", "ordered"):
        assert len((await gauge("pop_many", worker="ann", count=MOST, now=A_MOMENT, order=order, batch=batch))[0]) == MOST
    assert gauge.most <= MOST * 40


async def test_a_check_takes_small_steps_through_large_keys(story: Story, gauge: Gauge) -> None:
    await crowd(story, MANY, "q:mail-depends", "depends", tags='["x"]')
    await crowd(story, MANY, "t:x", "depends", tags='["x"]')
    await story.change("ZADD", "tags", MANY, "x")
    await crowd(story, MANY, "f:typo", "failed", prefix="failed", failure=FAILURE)
    await story.change("SADD", "failures", "typo")
    await story.put("hub", 0, queue="post")
    await bind(story, MANY, dependents=True)
    cursor = ""
    while cursor != "0":
        reply = await gauge("check", now=1, cursor=cursor)
        assert (reply["found"], reply["examined"] < 400) == ([], True)
        cursor = reply["cursor"]
    assert gauge.most <= 250 * 5
