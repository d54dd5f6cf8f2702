"""A namespace's life as hypothesis lives it: every command, in any order, at literal times."""

import json
from collections.abc import Sequence
from typing import Any, Literal

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from .arguments import REFUSALS, Refusal
from .malformed import malformed_calls
from .model import Model
from .namespace import Place

JIDS = ["j1", "j2", "j3", "j4", 'j"5"\\ ', "r1-1"]
TEMPLATES = ["r1", "r2"]
INSTANCES = ["r1-1", "r1-2", "r2-1"]
QUEUES = ["a", "b: \u00e9"]
WORKERS = ["w1", 'w"2\\-\u00fc']
TAGS = ["t1", "t2", 't"\\\u00df']
GROUPS = ["g1", 'g: "2" \u20ac']
MESSAGE = 'no luck:\n\t"\u00e9\\" \x00'
DATA = ["{}", "[]", '{"n": 12345678901234567, "e": [], "f": 1.0}', '"h\u00e9\\u0000"', "null", " [1,\n {} ] ", "0"]
TAG_LISTS = [json.dumps(tags) for tags in ([], TAGS[:1], TAGS[1::-1], [TAGS[2], TAGS[2]], TAGS)]
STARTS = [0, 86390.5, 1353000060, 1700000000.5]
STEPS = [0.5, 1, 9.5, 10, 30, 60, 61, 3600, 43200, 86400]
LONGEST_LIFE = 5 * 86400  # statistics are pruned after a week, when is nobody's business here
OPTIONS = {
    "heartbeat": ["1", "30", "0.5", "-1"],
    "a-heartbeat": ["5", "100"],
    f"heartbeat-{QUEUES[1]}": ["7"],
    "heartbeat-a": ["8"],
    "grace-period": ["0", "3", "100", "-5"],
    "jobs-history": ["0", "-1", "100"],
    "jobs-history-count": ["0", "1", "2"],
    "a-max-concurrency": ["0", "1", "2"],
    "max-job-history": ["0", "1", "2", "3", "5"],
    "max-worker-age": ["60", "3600"],
    "max-lost": ["0", "1", "-1", "2.5"],
    "application": ["somebody's"],
}
CHANGES = [
    *(("priority", -7), ("retries", 1), ("interval", 30), ("interval", 7200), ("data", "[]"), ("klass", "S")),
    *(("queue", "a"), ("queue", QUEUES[1]), ("backlog", 2), ("backlog", 0), ("colour", "red")),
]

QUEUED = ["waiting", "scheduled", "depends", "stalled"]
AT_WORK = [*QUEUED, "running"]
ALL_STATES = [*AT_WORK, "failed", "complete"]

Data = st.DataObject


# What happens next, the commoner the oftener, and which of it needs what.
FOR_RUNS = ["complete", "advance", "heartbeat", "fail", "retry", "release", "timeout"]
FOR_RUNS += ["complete_many", "heartbeat_many"]
FOR_WORK = ["shift", "shift", "pop", "pop_late", "pop_many", "fail_idle", "prioritise"]
FOR_HELD = ["depend", "undepend"]
FOR_TEMPLATES = ["update_template", "tag_template", "stop_recurring"]
FOR_ALL = ["put", "put", "a_few_are_put", "put_many", "put_held", "requeue", "recur"]
FOR_ALL += ["cancel", "cancel_any", "unfail"]
FOR_LOOKS = ["peek", "log", "tag", "track", "ask_for_jobs", "ask_for_listings", "ask_for_counts", "ask_when_due"]
FOR_THE_SAKE_OF_ORDER = ["configure", "configure", "care_for_queues", "deregister", "something_malformed", "repeat"]
FOR_THE_SAKE_OF_ORDER += ["live_client"]
TIME = ["time_passes", "time_passes", "time_passes", "something_is_due", "something_is_due", "the_clock_slips"]
WHAT_HAPPENS = [*FOR_RUNS, *FOR_WORK, *FOR_HELD, *FOR_TEMPLATES, *FOR_ALL, *FOR_LOOKS, *FOR_THE_SAKE_OF_ORDER, *TIME]


class Life(RuleBasedStateMachine):
    """Drives a model; what else is driven, and compared with it, is up to `do`.

    There is one rule, which draws what happens: hypothesis leaves out some of many rules in each life, and lives in
    which nobody works, or time stands still, show little.
    """

    namespace = "ql"

    def __init__(self) -> None:
        super().__init__()
        self.model = Model(self.namespace)
        self.born = self.now = 0.0
        self.requests: list[tuple[tuple[str, ...], dict[str, Any]]] = []

    def do(self, command: str, /, *words: str, **given: Any) -> Any:
        """Carry out one call. Answers its reply, or the code of its refusal."""
        try:
            return self.model.call(command, *words, **given)
        except Refusal as refusal:
            return refusal.code
        finally:
            self.model.snapshot()

    def change(self, data: Data, command: str, /, *words: str, **given: Any) -> Any:
        """Carry out a call that changes something, now and then as a request that can be repeated."""
        given = {name: value for name, value in given.items() if value is not None}
        if self.rarely(data, "as a request"):
            given["request"] = f"c1:{len(self.requests)}"
            self.requests.append(((command, *words), given))
        return self.do(command, *words, **given)

    # What happens

    @initialize(data=st.data(), start=st.sampled_from(STARTS))
    def is_born(self, data: Data, start: float) -> None:
        """With a few jobs, and most lives with an option that isn't the usual."""
        self.born = self.now = start
        for option in data.draw(st.lists(st.sampled_from(sorted(OPTIONS)), max_size=2, unique=True), label="options"):
            self.do("config", "set", option=option, value=self.one(data, OPTIONS[option], "value"))
        for jid in data.draw(st.lists(st.sampled_from(JIDS), min_size=2, unique=True), label="jids"):
            self.do("put", queue="a", jid=jid, klass="K", data="{}", now=self.now, delay=0, retries=1)

    @rule(data=st.data(), what=st.sampled_from(WHAT_HAPPENS))
    def something_happens(self, data: Data, what: str) -> None:
        """One call, or a few that belong together; where there is no job for it, that something is put or popped."""
        if what in FOR_RUNS and not self.jids_in("running"):
            what = "shift"
        if what in FOR_WORK and not self.jids_in(*QUEUED):
            what = "a_few_are_put"
        if what in FOR_HELD and not self.jids_in("depends"):
            what = "put_held"
        if what in FOR_TEMPLATES and not self.recurs():
            what = "recur"
        getattr(self, what)(data)

    # Time

    def time_passes(self, data: Data) -> None:
        self.now = min(self.now + self.one(data, STEPS, "step"), self.born + LONGEST_LIFE)

    def something_is_due(self, data: Data) -> None:
        """Go to the very instant at which the next lock lapses or the next job is due, or a little later."""
        kinds: tuple[Place, ...] = ("locks", "scheduled", "recur")
        times = [time for queue in QUEUES for kind in kinds for time in self.model.place(queue, kind).values()]
        times += [self.model.job(jid).get("scheduled", 0) for jid in self.jids_in("depends")]
        ahead = [time for time in times if self.now < time <= self.born + LONGEST_LIFE]
        late = self.one(data, [0, 0, 0.5, 11], "late")
        self.now = min([time + late for time in ahead], default=self.now)

    def ask_when_due(self, data: Data) -> None:
        self.something_is_due(data)
        self.ask_for_listings(data)
        self.ask_for_counts(data)

    def the_clock_slips(self, data: Data) -> None:
        self.now = max(self.born, self.now - 0.5)

    # What is refused, or done only once

    def something_malformed(self, data: Data) -> None:
        running = self.jids_in("running")
        job = self.model.job(running[0]) if running else {"jid": "j1", "worker": "w1", "queue": "a"}
        held = self.jid(data, "depends")
        calls = malformed_calls(self.now, job["jid"], job["worker"], job["queue"], held, "r1")
        words, given = self.one(data, calls, "malformed")
        assert self.do(*words, **given) in REFUSALS

    def repeat(self, data: Data) -> None:
        """Call again what was called before, as a caller does who doesn't know whether it was carried out."""
        if self.requests:
            words, given = self.requests[-self.one(data, [1, 1, 2], "back") :][0]
            self.do(*words, **given)

    # Choosing

    @staticmethod
    def one(data: Data, values: Sequence[Any], label: str) -> Any:
        return data.draw(st.sampled_from(values), label=label)

    @staticmethod
    def some(data: Data, values: Sequence[Any], label: str, least: int = 1) -> list[Any]:
        return data.draw(st.lists(st.sampled_from(values), min_size=least, max_size=3), label=label)

    @staticmethod
    def rarely(data: Data, label: str) -> bool:
        return data.draw(st.integers(0, 7), label=label) == 7

    def jids_in(self, *states: str) -> list[str]:
        prefix = self.model.key("j", "")
        jobs = {key.removeprefix(prefix): job for key, job in self.model.keys.items() if key.startswith(prefix)}
        return sorted(jid for jid, job in jobs.items() if isinstance(job, dict) and job["state"] in states)

    def recurs(self) -> bool:
        return any(self.model.key("r", jid) in self.model.keys for jid in TEMPLATES)

    def jid(self, data: Data, *states: str) -> str:
        """Mostly one in the right state, sometimes any."""
        fitting = self.jids_in(*states)
        wrong = not fitting or self.rarely(data, "any jid")
        return str(self.one(data, [*JIDS, *INSTANCES] if wrong else fitting, "jid"))

    def free_jid(self, data: Data) -> str:
        """Mostly one that isn't at work, sometimes any."""
        busy = self.jids_in(*AT_WORK)
        free = [jid for jid in JIDS if jid not in busy]
        return str(self.one(data, JIDS if not free or self.rarely(data, "any jid") else free, "jid"))

    def run(self, data: Data) -> dict[str, Any]:
        """jid, worker and perhaps the fence of a run: mostly one that has its lock. And the time."""
        jid = self.jid(data, "running")
        job = self.model.keys.get(self.model.key("j", jid), {})
        worker, fence = job.get("worker") or "w1", job.get("x-fence", 0)
        if self.rarely(data, "another worker"):
            worker = self.one(data, [*WORKERS, "nobody"], "worker")
        fence = self.one(data, [None, None, None, fence, fence, fence, fence + 1], "fence")
        return {"jid": jid, "worker": worker, "fence": fence, "now": self.now}

    def run_in_queue(self, data: Data) -> dict[str, Any]:
        run = self.run(data)
        queue = self.model.keys.get(self.model.key("j", run["jid"]), {}).get("queue") or "a"
        if self.rarely(data, "another queue"):
            queue = self.one(data, QUEUES, "queue")
        return {**run, "queue": queue}

    def stage(self, data: Data, jid: str) -> dict[str, Any]:
        """When a job that is put may run."""
        incomplete = self.jids_in(*AT_WORK, "failed")
        others = [other for other in [*incomplete, *incomplete, *JIDS, "unknown"] if other != jid]
        depends = json.dumps(self.some(data, others, "depends", least=0)) if self.rarely(data, "with depends") else None
        return {"delay": self.one(data, [0, 0, 5, 0.5, 100000], "delay"), "depends": depends}

    # Putting

    def put(self, data: Data) -> None:
        jid = self.free_jid(data)
        self.change(
            data,
            "put",
            **self.stage(data, jid),
            queue=self.one(data, QUEUES, "queue"),
            jid=jid,
            klass="K",
            now=self.now,
            data=self.one(data, DATA, "data"),
            priority=self.one(data, [None, 0, 5, -5, -0.25], "priority"),
            tags=self.one(data, [None, *TAG_LISTS], "tags"),
            retries=self.one(data, [None, 0, 1, 3], "retries"),
            worker=self.one(data, [None, "w1"], "worker"),
        )

    def a_few_are_put(self, data: Data) -> None:
        queue = self.one(data, QUEUES, "queue")
        for _ in range(3):
            jid = self.free_jid(data)
            self.do("put", queue=queue, jid=jid, klass="K", data="{}", now=self.now, delay=0, retries=1)

    def put_many(self, data: Data) -> None:
        batch = [{"jid": self.free_jid(data), "klass": "K", "data": self.one(data, DATA, "data")} for _ in range(3)]
        batch[1] |= self.one(data, [{"delay": 5}, {"delay": -1}, {"priority": -3, "tags": TAG_LISTS[1]}], "second")
        depends = json.dumps([batch[0]["jid"]])
        batch[2] |= self.one(data, [{}, {"retries": 0, "depends": depends}, {"klass": ""}], "third")
        self.change(data, "put_many", queue=self.one(data, QUEUES, "queue"), now=self.now, batch=batch)

    def put_held(self, data: Data) -> None:
        """Put a job that depends on others, wherever those are."""
        jid = self.free_jid(data)
        others = [other for other in self.jids_in(*AT_WORK) if other != jid]
        given = {"queue": self.one(data, QUEUES, "queue"), "jid": jid, "klass": "K", "data": "{}", "now": self.now}
        self.do("put", **given | {"delay": self.one(data, [0, 5], "delay"), "depends": json.dumps(others[:2])})

    def requeue(self, data: Data) -> None:
        jid = self.jid(data, *ALL_STATES)
        queue = self.one(data, QUEUES, "queue")
        stage = self.stage(data, jid)
        self.change(data, "requeue", queue=queue, jid=jid, klass="L", data="[]", now=self.now, **stage)

    def recur(self, data: Data) -> None:
        self.change(
            data,
            "recur",
            "on",
            queue=self.one(data, QUEUES, "queue"),
            jid=self.one(data, TEMPLATES, "jid"),
            klass="R",
            data='{"e":[]}',
            now=self.now,
            interval=self.one(data, [60, 1, 2.5, 3600], "interval"),
            offset=self.one(data, [0, 1, 10], "offset"),
            priority=self.one(data, [None, 0, -3, 3], "priority"),
            tags=self.one(data, [None, *TAG_LISTS], "tags"),
            retries=self.one(data, [None, 0, 2], "retries"),
            backlog=self.one(data, [None, None, 0, 1, 2], "backlog"),
        )

    def update_template(self, data: Data) -> None:
        pairs = [word for pair in self.some(data, CHANGES, "changes") for word in pair]
        self.change(data, "recur", "update", jid=self.one(data, TEMPLATES, "jid"), pairs=pairs)

    def tag_template(self, data: Data) -> None:
        word, jid = self.one(data, ["tag", "untag"], "word"), self.one(data, TEMPLATES, "jid")
        self.change(data, "recur", word, jid=jid, tags=self.some(data, TAGS, "tags"))

    def stop_recurring(self, data: Data) -> None:
        self.change(data, "recur", "off", jid=self.one(data, TEMPLATES, "jid"))

    # Working

    def pop(self, data: Data) -> None:
        queue, worker = self.one(data, QUEUES, "queue"), self.one(data, WORKERS, "worker")
        self.change(data, "pop", queue=queue, worker=worker, count=self.one(data, [1, 2, 3, 10], "count"), now=self.now)

    def pop_late(self, data: Data) -> None:
        """Pop when the next lock has lapsed, or the next job is due."""
        self.something_is_due(data)
        worker = self.one(data, WORKERS, "worker")
        for queue in QUEUES:
            self.do("pop", queue=queue, worker=worker, count=2, now=self.now)

    def shift(self, data: Data) -> None:
        """A worker takes jobs and ends each in its own way, or keeps it."""
        queue, worker = self.one(data, QUEUES, "queue"), self.one(data, WORKERS, "worker")
        for job in self.do("pop", queue=queue, worker=worker, count=self.one(data, [1, 2, 6], "count"), now=self.now):
            self.now += self.one(data, [0, 0, 1, 61], "it took")
            run = {"jid": job["jid"], "worker": worker, "now": self.now}
            ways = ["complete", "complete", "advance", "fail", "retry", "release", "keep", "keep"]
            match self.one(data, ways, "how"):
                case "complete":
                    self.do("complete", **run, queue=queue, data="")
                case "advance":
                    self.do("complete", **run, queue=queue, data="", next=self.one(data, QUEUES, "next"))
                case "fail":
                    self.do("fail", **run, group="g1", message=MESSAGE, fence=job["fence"])
                case "retry":
                    self.do("retry", **run, queue=queue, delay=self.one(data, [0, 5], "delay"))
                case "release":
                    self.do("release", **run)

    def pop_many(self, data: Data) -> None:
        """A worker takes from all its queues, the first before the second."""
        batch = [{"queue": queue} for queue in self.one(data, [QUEUES, QUEUES[::-1]], "queues")]
        batch[0] |= self.one(data, [{}, {"limit": 1}, {"limit": 0}], "first")
        worker, count = self.one(data, WORKERS, "worker"), self.one(data, [0, 1, 2, 3, 10], "count")
        self.change(data, "pop_many", worker=worker, count=count, now=self.now, order="ordered", batch=batch)

    def peek(self, data: Data) -> None:
        queue, count = self.one(data, QUEUES, "queue"), self.one(data, [0, 1, 2, 10], "count")
        kinds: tuple[Place, ...] = ("locks", "scheduled", "recur")
        due = any(score <= self.now for kind in kinds for score in self.model.place(queue, kind).values())
        # How much a later page moves, nothing promises.
        offset = None if due else self.one(data, [None, 0, 1, 2], "offset")
        self.change(data, "peek", queue=queue, count=count, now=self.now, offset=offset)

    def heartbeat(self, data: Data) -> None:
        self.change(data, "heartbeat", **self.run(data), data=self.one(data, [None, *DATA], "data"))

    def complete(self, data: Data) -> None:
        self.change(data, "complete", **self.run_in_queue(data), data=self.one(data, ["", "", *DATA], "data"))

    def complete_many(self, data: Data) -> None:
        runs = [self.run_in_queue(data) for _ in range(3)]
        given = [{name: run[name] for name in ("jid", "queue", "fence") if run[name] is not None} for run in runs]
        given[0] |= self.one(data, [{}, {"data": "[]"}, {"data": "{"}], "first")
        given[1] |= self.one(data, [{}, {"next": "a"}, {"next": "a", "delay": 5}, {"delay": 5}], "second")
        self.change(data, "complete_many", worker=runs[0]["worker"], now=self.now, batch=given)

    def heartbeat_many(self, data: Data) -> None:
        runs = [self.run(data) for _ in range(3)]
        given = [{name: run[name] for name in ("jid", "fence") if run[name] is not None} for run in runs]
        self.change(data, "heartbeat_many", worker=runs[0]["worker"], now=self.now, batch=given)

    def advance(self, data: Data) -> None:
        run = self.run_in_queue(data)
        stage = self.stage(data, run["jid"])
        self.change(data, "complete", **run, **stage, data="", next=self.one(data, QUEUES, "next"))

    def fail(self, data: Data) -> None:
        text = self.one(data, [None, *DATA], "data")
        self.change(data, "fail", **self.run(data), group=self.one(data, GROUPS, "group"), message=MESSAGE, data=text)

    def retry(self, data: Data) -> None:
        said = self.one(data, [{}, {"group": "g1"}, {"group": "g1", "message": "again"}], "said")
        self.change(data, "retry", **self.run_in_queue(data), **said, delay=self.one(data, [None, 0, 5], "delay"))

    def release(self, data: Data) -> None:
        self.change(data, "release", **self.run(data), delay=self.one(data, [None, 0, 5], "delay"))

    # Operating

    def timeout(self, data: Data) -> None:
        jids = [self.jid(data, "running") for _ in range(self.one(data, [1, 2], "how many"))]
        self.change(data, "timeout", jids=list(dict.fromkeys(jids)), now=self.now)

    def cancel(self, data: Data) -> None:
        """A job with all that depend on it."""
        jids = [self.jid(data, *AT_WORK, "failed")]
        for jid in jids:
            jids += sorted(self.model.dependents(jid) - set(jids))
        self.change(data, "cancel", jids=jids)

    def cancel_any(self, data: Data) -> None:
        self.change(data, "cancel", jids=self.some(data, [*JIDS, "r2-1", "unknown"], "jids"))

    def fail_idle(self, data: Data) -> None:
        jid = self.jid(data, *QUEUED)
        self.change(data, "fail", jid=jid, worker="", group=GROUPS[1], message="not that one", now=self.now)

    def unfail(self, data: Data) -> None:
        group = self.one(data, sorted(self.model.members("failures")) or GROUPS, "group")
        queue, count = self.one(data, QUEUES, "queue"), self.one(data, [None, None, 0, 1, 10], "count")
        self.change(data, "unfail", queue=queue, group=group, now=self.now, count=count)

    def prioritise(self, data: Data) -> None:
        priority = self.one(data, [0, 10, -10, -0.5, 1e9], "priority")
        self.change(data, "priority", jid=self.jid(data, *QUEUED), priority=priority)

    def log(self, data: Data) -> None:
        more = self.one(data, [None, '{"pid": 7}', '{"when": 1, "what": "x", "n": [1]}'], "data")
        self.change(data, "log", jid=self.jid(data, *ALL_STATES), message="noted", now=self.now, data=more)

    def tag(self, data: Data) -> None:
        jid, tags = self.jid(data, *ALL_STATES), self.some(data, TAGS, "tags")
        self.change(data, "tag", self.one(data, ["add", "remove"], "word"), jid=jid, now=self.now, tags=tags)

    def track(self, data: Data) -> None:
        jid, word = self.jid(data, *ALL_STATES), self.one(data, ["track", "track", "untrack"], "word")
        tags = self.one(data, [None, None, TAGS[:1], TAGS[1:]], "tags") if word == "track" else None
        self.change(data, "track", word, jid=jid, now=self.now, tags=tags)

    def depend(self, data: Data) -> None:
        jids = self.some(data, [*JIDS, "unknown"], "jids")
        self.change(data, "depends", "on", jid=self.jid(data, "depends"), jids=jids, now=self.now)

    def undepend(self, data: Data) -> None:
        jid = self.jid(data, "depends")
        jids = self.some(data, sorted(self.model.dependencies(jid)) or JIDS, "jids")
        jids = self.one(data, [["all"], jids], "jids")
        self.change(data, "depends", "off", jid=jid, jids=jids, now=self.now)

    def care_for_queues(self, data: Data) -> None:
        command = self.one(data, ["pause", "unpause", "unpause", "forget"], "command")
        self.change(data, command, queues=self.some(data, QUEUES, "queues"))

    def deregister(self, data: Data) -> None:
        self.change(data, "deregister", workers=self.some(data, WORKERS, "workers"))

    def configure(self, data: Data) -> None:
        option = self.one(data, sorted(OPTIONS), "option")
        value = self.one(data, [None, *OPTIONS[option], *OPTIONS[option]], "value")
        if value is None:
            self.change(data, "config", "unset", option=option)
        else:
            self.change(data, "config", "set", option=option, value=value)

    # What live clients leave behind, and ours must live with

    def by_hand(self, kind: Literal["HSET", "HDEL", "ZADD"], *key: str, **change: Any) -> None:
        """Change a key as no call of ours does."""
        place = self.model.keys.setdefault(self.model.key(*key), {})
        for name, value in change.items():
            if kind == "HDEL":
                place.pop(name, None)
            else:
                place[name] = value

    def live_client(self, data: Data) -> None:
        where = {
            "retried": self.jids_in("waiting"),  # its worker and expiry stay in the hash
            "advanced with a delay": self.jids_in("scheduled"),  # it is called waiting
            "timed out": self.jids_in("stalled"),  # it stays in its worker's list
            "released": self.jids_in("waiting", "running"),  # the delay it had stays in the hash
            "popped": self.jids_in("running"),  # without our fields
        }
        what = self.one(data, sorted(where), "what a live client did")
        if not where[what]:
            return
        jid = self.one(data, where[what], "jid")
        match what:
            case "retried":
                self.by_hand("HSET", "j", jid, worker="w1", expires=self.now + 60)
            case "advanced with a delay":
                self.by_hand("HSET", "j", jid, state="waiting")
            case "timed out":
                self.by_hand("ZADD", "w", self.model.job(jid)["worker"], "jobs", **{jid: self.now})
            case "released":
                self.by_hand("HSET", "j", jid, scheduled=self.now + 5)
            case "popped":
                self.by_hand("HDEL", "j", jid, **{"x-put": None, "x-fence": None})

    # Asking

    def ask_for_jobs(self, data: Data) -> None:
        for jid in self.jids_in(*ALL_STATES):
            self.do("get", jid=jid)
        self.do("get", jid="unknown")
        self.do("multiget", jids=["unknown", *JIDS[::-1]])
        self.do("track", "list")
        self.do("failed")
        for group in sorted(self.model.members("failures")) or ["g1"]:
            self.do("failed", group=group)
            self.do("failed", group=group, start=1, limit=1)

    def ask_for_listings(self, data: Data) -> None:
        wanted = self.one(data, [{}, {"offset": 1}, {"offset": 0, "count": 2}, {"offset": 1, "count": 1}], "page")
        self.do("jobs", state="complete", now=self.now, queue="", **wanted)
        for state in ("running", "stalled", "scheduled", "depends", "recurring", "waiting"):
            for queue in QUEUES:
                self.do("jobs", state=state, now=self.now, queue=queue, **wanted)
        self.do("tag", "top", **wanted)
        for tag in TAGS:
            self.do("tag", "get", tag=tag, **wanted)

    def ask_for_counts(self, data: Data) -> None:
        date = max(0, self.now - self.one(data, [0, 86400], "back"))
        for queue in [*QUEUES, "unknown"]:
            self.do("queues", now=self.now, queue=queue)
            self.do("length", queue=queue)
            self.do("stats", queue=queue, date=date)
        self.do("queues", now=self.now)
        self.do("queues", now=self.now, queue="", offset=1, count=1)
        self.do("workers", now=self.now)
        for worker in [*WORKERS, "unknown"]:
            self.do("workers", now=self.now, worker=worker)
        for template in TEMPLATES:
            self.do("recur", "get", jid=template)
        self.do("config", "get")
        for option in OPTIONS:
            self.do("config", "get", option=option)
