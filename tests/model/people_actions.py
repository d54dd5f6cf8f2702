"""Actions of people, as workers and as operators, and keys that live clients of qless leave."""

from typing import Any, Literal

from tests.model.driver import Data
from tests.model.names import (
    ALL_STATES,
    AT_WORK,
    DATA,
    GROUPS,
    JIDS,
    LIMITS,
    MESSAGE,
    OPTIONS,
    QUEUED,
    QUEUES,
    SESSIONS,
    TAGS,
    WORKERS,
)
from tests.model.worker_actions import WorkerActions


class PeopleActions(WorkerActions):
    """Actions from `reserve` to `configure`."""

    # Reserving

    def reserve(self, data: Data) -> None:
        """Reserve a job for a person, sometimes under its name alone, or one that it skipped."""
        session = self.one(data, SESSIONS, "session")
        self.change(
            data,
            "reserve",
            queue=self.one(data, QUEUES, "queue"),
            person=session.partition("@")[0],
            worker=session,
            limit=self.one(data, LIMITS, "limit"),
            now=self.now,
            again=self.one(data, [None, None, 0, 1], "again"),
        )

    def reserve_late(self, data: Data) -> None:
        """Reserve when the next reservation or lock has just expired."""
        self.something_is_due(data)
        self.reserve(data)

    def extend(self, data: Data) -> None:
        self.change(data, "extend", **self.run(data), limit=self.one(data, LIMITS, "limit"))

    def hand_over(self, data: Data) -> None:
        to = self.one(data, SESSIONS, "to")
        self.change(
            data, "hand_over", **self.run(data), to=to, limit=self.one(data, LIMITS, "limit")
        )

    def skip(self, data: Data) -> None:
        run = self.run(data)
        self.change(data, "skip", **run, person=run["worker"].partition("@")[0])

    def reserve_and_decide(self, data: Data) -> None:
        """Let a person reserve jobs and complete, release or keep each."""
        session, queue = self.one(data, SESSIONS, "session"), self.one(data, QUEUES, "queue")
        person = session.partition("@")[0]
        for _ in range(self.one(data, [1, 2, 3], "count")):
            has = self.do(
                "reserve", queue=queue, person=person, worker=session, limit=60, now=self.now
            )["job"]
            if has is None:
                return
            self.now += self.one(data, [0, 1, 59, 61], "it took")
            run = {"jid": has["jid"], "worker": session, "fence": has["fence"], "now": self.now}
            match self.one(
                data,
                ["finish", "skip", "skip", "give back", "hand over", "fail", "stay"],
                "decision",
            ):
                case "finish":
                    self.do("complete", **run, queue=queue, data="")
                case "skip":
                    self.do("skip", **run, person=person)
                case "give back":
                    self.do("release", **run)
                case "hand over":
                    self.do("hand_over", **run, to=self.one(data, SESSIONS, "to"), limit=60)
                case "fail":
                    self.do("fail", **run, group="g1", message=MESSAGE)

    def revive(self, data: Data) -> None:
        group = self.one(data, sorted(self.model.members("failures")) or GROUPS, "group")
        self.change(
            data,
            "revive",
            "group",
            group=group,
            now=self.now,
            count=self.one(data, [None, 0, 1, 10], "count"),
        )

    def revive_one(self, data: Data) -> None:
        jid = self.jid(data, "failed")
        known = self.model.keys.get(self.model.key("j", jid), {}).get("data")
        was, new = (
            self.one(data, [None, known, "[7]"], "was"),
            self.one(data, [None, *DATA], "data"),
        )
        self.change(data, "revive", "job", jid=jid, now=self.now, data=new, was=was)

    # Operating

    def timeout(self, data: Data) -> None:
        jids = [self.jid(data, "running") for _ in range(self.one(data, [1, 2], "how many"))]
        self.change(data, "timeout", jids=list(dict.fromkeys(jids)), now=self.now)

    def cancel(self, data: Data) -> None:
        """Cancel a job with all its dependents."""
        jids = [self.jid(data, *AT_WORK, "failed")]
        for jid in jids:
            jids += sorted(self.model.dependents(jid) - set(jids))
        self.change(data, "cancel", jids=jids)

    def cancel_any(self, data: Data) -> None:
        self.change(data, "cancel", jids=self.some(data, [*JIDS, "r2-1", "unknown"], "jids"))

    def clear(self, data: Data) -> None:
        """Clear a queue in which some jobs have dependents, in any state."""
        for _ in range(self.one(data, [0, 1, 2], "held")):
            self.put_blocked(data)
        states = self.one(
            data,
            [QUEUED[:3], [*QUEUED[:3], "failed"], ["waiting"], ["depends", "failed"]],
            "states",
        )
        state, queue = self.one(data, states, "state"), self.one(data, QUEUES, "queue")
        group = (
            self.one(data, sorted(self.model.members("failures")) or GROUPS, "group")
            if state == "failed"
            else None
        )
        dry = self.one(data, [None, None, 1], "dry run")
        self.change(
            data,
            "clear",
            queue=queue,
            state=state,
            offset=0,
            now=self.now,
            states=states,
            group=group,
            dry_run=dry,
        )

    def fail_idle(self, data: Data) -> None:
        jid = self.jid(data, *QUEUED)
        self.change(
            data, "fail", jid=jid, worker="", group=GROUPS[1], message="not that one", now=self.now
        )

    def unfail(self, data: Data) -> None:
        group = self.one(data, sorted(self.model.members("failures")) or GROUPS, "group")
        queue, count = (
            self.one(data, QUEUES, "queue"),
            self.one(data, [None, None, 0, 1, 10], "count"),
        )
        self.change(data, "unfail", queue=queue, group=group, now=self.now, count=count)

    def prioritise(self, data: Data) -> None:
        priority = self.one(data, [0, 10, -10, -0.5, 100], "priority")
        self.change(data, "priority", jid=self.jid(data, *QUEUED), priority=priority)

    def log(self, data: Data) -> None:
        more = self.one(data, [None, '{"pid": 7}', '{"when": 1, "what": "x", "n": [1]}'], "data")
        self.change(
            data, "log", jid=self.jid(data, *ALL_STATES), message="noted", now=self.now, data=more
        )

    def tag(self, data: Data) -> None:
        jid, tags = self.jid(data, *ALL_STATES), self.some(data, TAGS, "tags")
        self.change(
            data, "tag", self.one(data, ["add", "remove"], "word"), jid=jid, now=self.now, tags=tags
        )

    def track(self, data: Data) -> None:
        jid, word = (
            self.jid(data, *ALL_STATES),
            self.one(data, ["track", "track", "untrack"], "word"),
        )
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

    def manage_queues(self, data: Data) -> None:
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

    # Keys that live clients leave and our scripts must accept

    def by_hand(self, kind: Literal["HSET", "HDEL", "ZADD"], *key: str, **change: Any) -> None:
        """Change a key in a way that none of our commands does."""
        place = self.model.keys.setdefault(self.model.key(*key), {})
        for name, value in change.items():
            if kind == "HDEL":
                place.pop(name, None)
            else:
                place[name] = value

    def live_client(self, data: Data) -> None:
        where = {
            "retried": self.jids_in("waiting"),  # worker and expiry stay in the job's hash
            "advanced with a delay": self.jids_in("scheduled"),  # the job's state is waiting
            "timed out": self.jids_in("stalled"),  # the job stays in its worker's list
            "released": self.jids_in("waiting", "running"),  # the delay stays in the job's hash
            "popped": self.jids_in("running"),  # the fields that qless does not know are missing
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
