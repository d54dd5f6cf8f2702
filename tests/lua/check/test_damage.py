"""Damage in a namespace is reported, and fixed without losing a job."""

import pytest

from tests.lua.check.all_states import (
    FAILURE,
    FREE_FIELDS,
    TERMS,
    Commands,
    data_of_jobs,
    drain,
    findings,
    note,
    problems,
    put_all_states,
)
from tests.lua.story import Story

# Manual changes of the keys of a namespace, and the problems that check then finds.
WOUNDS: dict[str, tuple[set[str], Commands]] = {
    # Jobs in the sets of queues
    **{
        f"a jid without a job is in {kind}": ({"entry-without-job"},
            [("ZADD", f"q:mail-{kind}", 1, "ghost")])
        for kind in ("work", "scheduled", "locks", "depends")
    },
    "a job is listed by another queue too": ({"entry-of-other-queue"},
        [("ZADD", "q:post-work", 1, "waiting")]),
    "a job is listed by another queue alone": (
        {"entry-of-other-queue", "nowhere"},
        [("ZREM", "q:mail-work", "waiting"), ("ZADD", "q:post-work", 1, "waiting")],
    ),
    "a completed job still waits": ({"entry-of-other-queue"}, [("ZADD", "q:mail-work", 1, "done")]),
    "a waiting job is nowhere": ({"nowhere"}, [("ZREM", "q:mail-work", "waiting")]),
    "a stalled job is nowhere": ({"nowhere"}, [("ZREM", "q:mail-work", "stalled")]),
    "a scheduled job is nowhere": ({"nowhere"}, [("ZREM", "q:mail-scheduled", "scheduled")]),
    "a held job is nowhere": ({"nowhere"}, [("ZREM", "q:mail-depends", "held")]),
    "a running job has no lock": ({"without-lock"}, [("ZREM", "q:mail-locks", "running")]),
    "a running job without a worker has no lock": (
        {"without-lock", "held-not-running"},
        [("ZREM", "q:mail-locks", "running"), ("HSET", "j:running", "worker", "")],
    ),
    "a failed job is in no group": ({"not-in-group"}, [("LREM", "f:typo", 0, "failed")]),
    "the only job of a group isn't in it": ({"not-in-group"},
        [("DEL", "f:rare"), ("SREM", "failures", "rare")]),
    "a completed job isn't among the completed": ({"not-in-completed"},
        [("ZREM", "completed", "done")]),
    "a waiting job is locked instead": ({"misplaced"},
        [("ZREM", "q:mail-work", "waiting"), ("ZADD", "q:mail-locks", 99, "waiting")]),
    "a running job waits instead": ({"misplaced"},
        [("ZREM", "q:mail-locks", "running"), ("ZADD", "q:mail-work", 1, "running")]),
    "a held job waits instead": ({"misplaced"},
        [("ZREM", "q:mail-depends", "held"), ("ZADD", "q:mail-work", 1, "held")]),
    "a scheduled job waits instead": ({"misplaced"},
        [("ZREM", "q:mail-scheduled", "scheduled"), ("ZADD", "q:mail-work", 1, "scheduled")]),
    "a failed job waits instead": ({"misplaced"},
        [("LREM", "f:typo", 0, "failed"), ("ZADD", "q:mail-work", 1, "failed")]),
    "a waiting job is locked too": ({"in-two-places"}, [("ZADD", "q:mail-locks", 99, "waiting")]),
    "a waiting job is scheduled too": ({"in-two-places"},
        [("ZADD", "q:mail-scheduled", 99, "waiting")]),
    "a running job waits too": ({"in-two-places"}, [("ZADD", "q:mail-work", 1, "running")]),
    "a failed job waits too": ({"in-two-places"}, [("ZADD", "q:mail-work", 1, "failed")]),
    "a scheduled job is held too": ({"in-two-places"},
        [("ZADD", "q:mail-depends", 1, "scheduled")]),
    "a queue with jobs isn't known": ({"queue-unknown"}, [("ZREM", "queues", "post")]),
    # Workers
    "a waiting job is in a worker's list": ({"held-not-running"},
        [("ZADD", "w:ann:jobs", 99, "waiting")]),
    "another worker's job is in a worker's list": ({"held-not-running"},
        [("ZADD", "w:bob:jobs", 99, "running")]),
    "no job is in a worker's list": ({"held-not-running"}, [("ZADD", "w:bob:jobs", 99, "ghost")]),
    # Fields
    **{f"a waiting job has no {field}": ({"fields"},
        [("HDEL", "j:waiting", field)]) for field in FREE_FIELDS},
    **{
        f"a {jid} job has no state": ({"fields"}, [("HDEL", f"j:{jid}", "state")])
        for jid in ("scheduled", "held")
    },
    "a running job has no expires": ({"fields"}, [("HDEL", "j:running", "expires")]),
    "a running job has no worker": ({"fields", "held-not-running"},
        [("HDEL", "j:running", "worker")]),
    "a running job has no state": ({"fields", "held-not-running"},
        [("HDEL", "j:running", "state")]),
    "a waiting job has no tags": ({"fields", "tag-not-on-job"}, [("HDEL", "j:waiting", "tags")]),
    "a job without a state is in no set": ({"fields", "nowhere"},
        [("HDEL", "j:waiting", "state"), ("ZREM", "q:mail-work", "waiting")]),
    "a job is in a state that there isn't": ({"fields"},
        [("HSET", "j:waiting", "state", "sleeping")]),
    "a job has retries that are no number": ({"fields"},
        [("HSET", "j:waiting", "retries", "many", "remaining", "nan")]),
    "a job has tags that can't be read": ({"fields"}, [("HSET", "j:post", "tags", "x,y")]),
    "a job has a failure that can't be read": ({"fields"}, [("HSET", "j:waiting", "failure", "")]),
    "a waiting job has no klass": ({"fields"}, [("HDEL", "j:waiting", "klass")]),
    "a running job has no data": ({"fields"}, [("HDEL", "j:running", "data")]),
    "a held job has no data": ({"fields"}, [("HDEL", "j:held", "data")]),
    "a failed job has no data": ({"fields"}, [("HSET", "j:failed", "data", "")]),
    "a failed job has no failure": ({"fields", "not-in-group", "not-failed-in-group"},
        [("HDEL", "j:failed", "failure")]),
    "a waiting job has no queue": ({"fields", "without-queue", "entry-of-other-queue"},
        [("HDEL", "j:waiting", "queue")]),
    "a scheduled job has an empty queue": ({"without-queue", "entry-of-other-queue"},
        [("HSET", "j:scheduled", "queue", "")]),
    "next to nothing is left of a job": (
        {"fields", "not-in-group", "entry-of-other-queue", "tag-not-on-job"},
        [("DEL", "j:waiting"), ("HSET", "j:waiting", "priority", 1)],
    ),
    "fences have fallen behind": ({"fence-behind"}, [("SET", "x:fence", 0)]),
    # Failure groups
    "a group lists a waiting job": ({"not-failed-in-group"}, [("LPUSH", "f:typo", "waiting")]),
    "a group lists no job": ({"not-failed-in-group"}, [("LPUSH", "f:typo", "ghost", "ghost")]),
    "a group lists another's job": ({"not-failed-in-group"}, [("RPUSH", "f:typo", "rare")]),
    "a group lists a job twice": ({"twice-in-group"}, [("RPUSH", "f:typo", "failed")]),
    "a group has no failed job": ({"not-failed-in-group", "group-unknown"},
        [("LPUSH", "f:odd", "waiting", "held")]),
    "a group with jobs isn't known": ({"group-unknown"}, [("SREM", "failures", "typo")]),
    "a known group is empty": ({"group-empty"}, [("SADD", "failures", "odd")]),
    "a day has fewer failed jobs than none": ({"failed-count"},
        [("HSET", "s:stats:0:mail", "failed", -2)]),
    "a day has more failed jobs than failures": ({"failed-count"},
        [("HSET", "s:stats:0:mail", "failed", 9)]),
    # Completed jobs
    "a waiting job is among the completed": ({"entry-not-complete"},
        [("ZADD", "completed", 1, "waiting")]),
    "no job is among the completed": ({"entry-not-complete"}, [("ZADD", "completed", 1, "ghost")]),
    # Tags
    "a tag doesn't list a job that has it": ({"tag-without-entry", "tag-count"},
        [("ZREM", "t:x", "waiting")]),
    "a tag lists a job that doesn't have it": ({"tag-not-on-job", "tag-count"},
        [("ZADD", "t:x", 1, "post")]),
    "a tag lists no job": ({"tag-not-on-job", "tag-count"}, [("ZADD", "t:odd", 1, "ghost")]),
    "a tag's counter has drifted": ({"tag-count"}, [("ZINCRBY", "tags", 3, "x")]),
    "a tag that is nowhere counts": ({"tag-count"}, [("ZADD", "tags", -1, "odd")]),
    "a tag isn't counted": ({"tag-count"}, [("ZREM", "tags", "x")]),
    # Dependencies
    "a held job depends on nothing": ({"held-by-nothing"},
        [("DEL", "j:late-dependencies"), ("DEL", "j:slow-dependents")]),
    "a held job depends on nothing, and the other side doesn't know": (
        {"held-by-nothing", "one-sided"},
        [("DEL", "j:late-dependencies")],
    ),
    "a job depends on one that doesn't know": ({"one-sided"},
        [("SREM", "j:waiting-dependents", "held")]),
    "a job has a dependent that doesn't know": ({"one-sided"},
        [("SREM", "j:held-dependencies", "waiting")]),
    "a job has a waiting dependent": ({"one-sided"}, [("SADD", "j:waiting-dependents", "post")]),
    "a job has a dependent that isn't there": ({"one-sided"},
        [("SADD", "j:waiting-dependents", "ghost")]),
    "a job depends on a completed one": ({"dependency-satisfied"},
        [("SADD", "j:held-dependencies", "done")]),
    "a job depends on a completed one alone": (
        {"dependency-satisfied", "one-sided"},
        [("DEL", "j:late-dependencies"), ("SADD", "j:late-dependencies", "done")],
    ),
    "a job depends on one that isn't there": ({"dependency-satisfied"},
        [("SADD", "j:held-dependencies", "ghost")]),
    "a job depends on itself": (
        {"dependency-satisfied"},
        [("SADD", "j:held-dependencies", "held"), ("SADD", "j:held-dependents", "held")],
    ),
    "a waiting job has dependencies": (
        {"not-held"},
        [("SADD", "j:waiting-dependencies", "post"), ("SADD", "j:post-dependents", "waiting")],
    ),
    "a scheduled job has dependencies": (
        {"not-held"},
        [("SADD", "j:scheduled-dependencies", "post"), ("SADD", "j:post-dependents", "scheduled")],
    ),
    "a running job has dependencies": (
        {"not-held"},
        [("SADD", "j:running-dependencies", "post"), ("SADD", "j:post-dependents", "running")],
    ),
    "there are dependencies of no job": (
        {"dependency-without-job"},
        [("SADD", "j:ghost-dependencies", "post"), ("SADD", "j:post-dependents", "ghost")],
    ),
    # Templates
    "a template has no turn": ({"template-nowhere"}, [("ZREM", "q:mail-recur", "hourly")]),
    "a turn is of no template": ({"entry-without-template"},
        [("ZADD", "q:mail-recur", 1, "ghost")]),
    "a template has a turn in another queue": ({"entry-without-template"},
        [("ZADD", "q:post-recur", 1, "hourly")]),
    "a template lacks what has defaults": ({"template-fields"},
        [("HDEL", "r:hourly", "data", "priority", "count", "backlog")]),
    "a template with a cron expression has no turn": ({"template-nowhere"},
        [("ZREM", "x:ticks", "nightly")]),
    "a tick is of no template": ({"entry-without-template"}, [("ZADD", "x:ticks", 1, "ghost")]),
    "one with a cron expression lacks what has defaults": ({"template-fields"},
        [("HDEL", "x:cron:nightly", "data", "type", "retries")]),
    "a paused template isn't listed": ({"paused-unlisted"},
        [("ZREM", "x:paused-recurring", "paused")]),
    "a paused template with a cron expression isn't listed": ({"paused-unlisted"},
        [("ZREM", "x:paused-recurring", "quiet")]),
    "no template is listed as paused": ({"resting-not-paused"},
        [("ZADD", "x:paused-recurring", 1, "ghost")]),
    "a peer put a paused template anew": ({"resting-not-paused"},
        [("ZADD", "q:mail-recur", 70, "paused")]),
    "a template's next run is in a day": ({"recurring-late"},
        [("ZADD", "q:mail-recur", 90_000, "hourly")]),
    "a peer took off a paused template": ({"resting-not-paused"}, [("DEL", "r:paused")]),
    # Keys of this library
    "a note is about nothing": ({"note-without-rest"},
        [("ZADD", "x:agenda", 0, note("links", "release:1:waiting"))]),
    "a note can't be read": ({"note-without-rest"},
        [("ZADD", "x:agenda", 0, "remember the milk")]),
    "a note on a failure is about nothing": ({"note-without-rest"},
        [("ZADD", "x:agenda", 0, note("policies", "failed:1:failed"))]),
    "a note on a failure is of another kind": ({"note-without-rest", "rest-without-note"},
        [("ZADD", "x:agenda", 0, note("links", "failed:1:failed")),
         ("SADD", "x:noted-jids:failed:1:failed", "waiting")]),
    "a rest of a failure has no note": ({"rest-without-note"},
        [("SADD", "x:noted-jids:failed:1:failed", "waiting")]),
    "a rest has no note": ({"rest-without-note"},
        [("SADD", "x:noted-jids:unlink:1:ghost", "waiting")]),
    "a rest can't be understood": ({"rest-without-note"},
        [("SADD", "x:noted-jids:milk", "waiting")]),
    "a key is had by no job": ({"unique-without-job"}, [("SET", "x:unique:k", ":ghost")]),
    "a key is had by a job that doesn't know": ({"unique-without-job"},
        [("SET", "x:unique:k", ":waiting")]),
    "a key is had by what ended": (
        {"unique-without-job"},
        [("HSET", "j:done", "x-constraints", TERMS), ("SET", "x:unique:k", ":done")],
    ),
    "a key is had for a time and forever": ({"unique-without-job"},
        [("SET", "x:unique:k", "99.000000:waiting")]),
    "a key is had by nobody can tell whom": ({"unique-without-job"},
        [("SET", "x:unique:k", "waiting")]),
    "a waiting job counts towards a limit": ({"holding-not-running"},
        [("ZADD", "x:limit-running:k", 99, "waiting", 99, "ghost")]),
    "a waiting job is held back": ({"held-back-elsewhere"},
        [("HSET", "j:waiting", "x-constraints", TERMS), ("ZADD", "x:held-back:k", 1, "waiting")]),
    "a scheduled job is held back by another's key": ({"held-back-elsewhere"},
        [("ZADD", "x:held-back:k", 1, "scheduled", 1, "ghost")]),
    "starts count forever": ({"starts-forever"}, [("ZADD", "x:rate-starts:k:k", 1, "waiting:1")]),
    "a result is kept forever": ({"result-forever"}, [("SET", "x:result:gone", "1 {}")]),
    "a job that takes a result is gone": (
        {"taker-ended"}, [("SET", "x:result:gone", "1 {}"), ("SADD", "x:takers:gone", "ghost")],
    ),
    "what somebody skipped is kept forever": ({"skipped-forever"},
        [("ZADD", "x:skipped:ada", 1, "waiting")]),
    "an answer is kept forever": ({"answer-forever"}, [("SET", "x:request:mine", "yes")]),
}  # fmt: skip
# Valid exceptions.
SCARS: dict[str, Commands] = {
    "a result outlived its job": [("SET", "x:result:gone", "1 {}", "EX", 60)],
    "a worker that was silent has lost its list": [("DEL", "w:ann:jobs"),
        ("ZREM", "workers", "ann")],
    "a peer advanced a job with a delay": [("HSET", "j:scheduled", "state", "waiting")],
    "a peer wrote empty lists as objects": [("HSET", "j:post", "tags", "{}", "failure", "{}")],
    "a peer's failed job has no expiry": [("HSET", "j:failed", "expires", "")],
    "a failure has a type instead of a group": [("HSET", "j:failed", "failure",
        FAILURE.replace("group", "type"))],
    "a waiting job still names its former worker": [("HSET", "j:waiting", "worker", "ann",
        "expires", "63")],
    "a tracked job is gone": [("ZADD", "tracked", 1, "ghost")],
    "a note on a released job is gone on with later": [
        ("ZADD", "x:agenda", 0, note("links", "release:1:done")),
        ("SADD", "x:noted-jids:release:1:done", "held"),
        ("SADD", "j:held-dependencies", "done"),
    ],
    "a note on a cancelled job is gone on with later": [
        ("ZADD", "x:agenda", 0, note("links", "unlink:2:ghost")),
        ("SADD", "x:noted-jids:unlink:2:ghost", "waiting"),
        ("SADD", "j:waiting-dependents", "ghost"),
    ],
    "a job has a key, and is held back": [
        ("HSET", "j:scheduled", "x-constraints", TERMS), ("SET", "x:unique:k", ":scheduled"),
        ("ZADD", "x:held-back:k", 1, "scheduled"),
    ],
    "a failed job may have its key again": [("HSET", "j:failed", "x-constraints", TERMS),
        ("SET", "x:unique:k", ":failed")],
    "a running job counts towards a limit": [("HSET", "j:running", "x-constraints", TERMS),
        ("ZADD", "x:limit-running:k", 1, "running")],
    "keys of others are none of ours": [("SET", "q:mail-limit", 1), ("SET", "elsewhere", 1),
        ("HSET", "s:wait:0:mail", "s1", 2)],
}  # fmt: skip


@pytest.mark.parametrize(("expected", "commands"), WOUNDS.values(), ids=WOUNDS)
async def test_damage_is_reported_and_fixed_without_losing_a_job(
    story: Story, expected: set[str], commands: Commands
) -> None:
    await put_all_states(story)
    before = await data_of_jobs(story)
    for command, key, *more in commands:
        await story.change(command, key, *more)

    async with story.unchanged():
        found = await findings(story)
    assert problems(found) == expected
    assert not any(finding["fixed"] for finding in found)

    resolved = await findings(story, resolve="resolve")
    assert problems(resolved) <= expected
    assert all(finding["fixed"] for finding in resolved)
    assert await findings(story) == []
    assert await drain(story) >= set(before)


@pytest.mark.parametrize("commands", SCARS.values(), ids=SCARS)
async def test_valid_exceptions_are_left_unchanged(story: Story, commands: Commands) -> None:
    await put_all_states(story)
    for command, key, *more in commands:
        await story.change(command, key, *more)
    async with story.unchanged():
        assert await findings(story, resolve="resolve") == []


async def test_entries_of_a_missing_job_are_removed(story: Story) -> None:
    await put_all_states(story)
    await story.store.log(jid="waiting", message="note", now=99)
    await story.change("DEL", "j:waiting")
    expected = {
        "entry-without-job",
        "history-without-job",
        "tag-not-on-job",
        "tag-count",
        "dependency-satisfied",
    }
    assert problems(await findings(story)) == expected - {"tag-count"}
    assert problems(await findings(story, resolve="resolve")) <= expected
    assert await findings(story) == []
    assert not [key for key in await story.all_keys() if "waiting" in key]
    assert await drain(story) >= {"held", "post", "late", "slow"}


async def test_fixed_lock_still_belongs_to_its_holder(story: Story) -> None:
    await story.running("a")
    await story.change("ZREM", "q:mail-locks", "a")
    await findings(story, resolve="resolve")
    assert await story.where("a") == {"locks": 61}
    assert await story.complete("a", 11) == "complete"


async def test_correct_entry_keeps_its_place(story: Story) -> None:
    await story.put("a", 0, delay=1000)
    await story.change("ZADD", "q:mail-work", 1, "a")
    await findings(story, resolve="resolve")
    assert await story.where("a") == {"scheduled": 1000}


async def test_job_without_required_fields_is_failed_visibly(
    story: Story,
) -> None:
    await story.put("a", 0)
    await story.change("HDEL", "j:a", "data")
    await findings(story, resolve="resolve", at=10)
    assert await story.store.failed() == {"found-by-check": 1}
    job = await story.get("a")
    assert job["failure"] == {
        "group": "found-by-check",
        "message": "The job lacked data",
        "when": 10,
        "worker": "",
    }
    assert await story.day() == {"failures": "1", "failed": "1"}
    await story.cancel("a")
    assert await story.day() == {"failures": "1", "failed": "0"}


async def test_holder_of_a_job_failed_by_check_is_notified(story: Story) -> None:
    await story.running("a")
    await story.change("HDEL", "j:a", "klass")
    async with story.published() as messages:
        await findings(story, resolve="resolve")
    assert ("w:ann", {"event": "lock_lost", "jid": "a", "worker": "ann"}) in messages
    assert await story.scores("w:ann:jobs") == {}


async def test_job_failed_by_check_publishes_the_tracked_event(story: Story) -> None:
    await story.running("a")
    await story.track("a")
    await story.change("HDEL", "j:a", "klass")
    async with story.published() as messages:
        await findings(story, resolve="resolve")
    log = {
        "event": "failed",
        "jid": "a",
        "worker": "ann",
        "group": "found-by-check",
        "message": "The job lacked klass",
    }
    assert [("log", log), ("failed", "a")] == messages[-2:]


async def test_job_failed_by_check_names_its_former_worker_in_history_and_failure(
    story: Story,
) -> None:
    await story.running("a")
    await story.change("HDEL", "j:a", "klass")
    await findings(story, resolve="resolve", at=10)
    job = await story.get("a")
    assert job["history"][-1] == {
        "when": 10,
        "what": "failed",
        "worker": "ann",
        "group": "found-by-check",
    }
    assert job["failure"]["worker"] == "ann"


async def test_job_failed_by_check_no_longer_counts_towards_its_concurrency_limit(
    story: Story,
) -> None:
    terms = '{"limits":[{"key":"k","limit":1}]}'
    await story.running("a", constraints=terms)
    await story.put("b", 2, constraints=terms)
    assert await story.pop(3, worker="bob") == []
    await story.change("HDEL", "j:a", "klass")
    await findings(story, resolve="resolve", at=4)
    assert await story.pop(5, worker="bob") == ["b"]


async def test_unfixable_template_is_reported_every_time_and_never_due(
    story: Story,
) -> None:
    await story.recur("hourly", 0)
    await story.change("HDEL", "r:hourly", "interval", "retries")
    assert problems(await findings(story, resolve="resolve")) == {"template-fields"}
    assert await story.scores("q:mail-recur") == {}
    [finding] = await findings(story, resolve="resolve")
    assert (finding["fields"], finding["fixed"]) == (["interval"], False)


async def test_missing_cron_expression_cannot_be_fixed(story: Story) -> None:
    await story.cron("nightly", 0, next=90_000)
    await story.change("HDEL", "x:cron:nightly", "cron")
    assert problems(await findings(story, resolve="resolve")) == {"template-fields"}
    assert await story.scores("x:ticks") == {}
    [finding] = await findings(story, resolve="resolve")
    assert (finding["fields"], finding["fixed"]) == (["cron"], False)


async def test_cron_template_without_a_next_time_becomes_due(
    story: Story,
) -> None:
    await story.cron("nightly", 0, next=90_000)
    await story.change("ZREM", "x:ticks", "nightly")
    await findings(story, resolve="resolve", at=10)
    assert await story.scores("x:ticks") == {"nightly": 10}


@pytest.mark.parametrize(
    "key",
    [
        "j:a",
        "q:mail-work",
        "completed",
        "failures",
        "f:typo",
        "x:agenda",
        "x:ticks",
        "x:paused-recurring",
        "x:cron:a",
    ],
)
async def test_key_of_the_wrong_type_is_reported_and_left_unchanged(story: Story, key: str) -> None:
    await story.change("SET", key, "text")
    async with story.unchanged():
        assert await findings(story, resolve="resolve") == [
            {"problem": "wrong-type", "fixed": False, "key": story.key(key), "type": "string"}
        ]


async def test_forgotten_queue_with_jobs_is_listed_again(story: Story) -> None:
    await story.put("a", 0)
    await story.store.forget(queues=["mail"])
    assert problems(await findings(story, resolve="resolve")) == {"queue-unknown"}
    assert await story.scores("queues") == {"mail": 10}
