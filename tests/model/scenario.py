"""The scenarios that hypothesis generates: every command, in any order, at literal times.

names.py           the names and values that calls use
driver.py          generated calls and the choice of their arguments; time
worker_actions.py  actions of workers and producers
people_actions.py  actions of people, and keys of live clients
"""

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from tests.model.driver import Data
from tests.model.names import (
    ALL_STATES,
    JIDS,
    OPTIONS,
    QUEUED,
    QUEUES,
    SESSIONS,
    STARTS,
    TAGS,
    TEMPLATES,
    WORKERS,
)
from tests.model.people_actions import PeopleActions

# The next actions by what they need; frequent ones are listed several times.
FOR_RUNS = ["complete", "advance", "heartbeat", "fail", "retry", "release", "timeout"]
FOR_RUNS += ["step", "step", "complete_many", "heartbeat_many", "extend", "hand_over", "skip"]
FOR_WORK = ["shift", "shift", "pop", "pop_late", "pop_many", "fail_idle", "prioritise"]
FOR_WORK += ["reserve", "reserve_late", "reserve_and_decide"]
FOR_HELD = ["depend", "undepend"]
FOR_TEMPLATES = ["update_template", "tag_template", "stop_recurring"]
FOR_ALL = ["put", "put", "put_several", "put_many", "put_blocked", "requeue", "recur"]
FOR_ALL += ["cancel", "cancel_any", "clear", "unfail", "revive", "revive_one"]
READS = [
    "peek",
    "log",
    "tag",
    "track",
    "ask_for_jobs",
    "ask_for_listings",
    "ask_for_counts",
    "ask_when_due",
]
ADMINISTRATION = [
    "configure",
    "configure",
    "manage_queues",
    "deregister",
    "repeat",
]
ADMINISTRATION += ["live_client"]
TIME = [
    "time_passes",
    "time_passes",
    "time_passes",
    "something_is_due",
    "something_is_due",
    "clock_goes_back",
]
WHAT_HAPPENS = [
    *FOR_RUNS,
    *FOR_WORK,
    *FOR_HELD,
    *FOR_TEMPLATES,
    *FOR_ALL,
    *READS,
    *ADMINISTRATION,
    *TIME,
]


class Scenario(PeopleActions):
    """A scenario.

    It has one rule, which draws the action. With many rules, hypothesis leaves out some of them in
    each scenario, and scenarios without workers or without passing time find little.
    """

    @initialize(data=st.data(), start=st.sampled_from(STARTS))
    def initialize_namespace(self, data: Data, start: float) -> None:
        """Put a few jobs, and usually set an option to another value than its default."""
        self.born = self.now = start
        for option in data.draw(
            st.lists(st.sampled_from(sorted(OPTIONS)), max_size=2, unique=True), label="options"
        ):
            self.do("config", "set", option=option, value=self.one(data, OPTIONS[option], "value"))
        for jid in data.draw(
            st.lists(st.sampled_from(JIDS), min_size=2, unique=True), label="jids"
        ):
            self.do(
                "put", queue="a", jid=jid, klass="K", data="{}", now=self.now, delay=0, retries=1
            )

    @rule(data=st.data(), what=st.sampled_from(WHAT_HAPPENS))
    def execute_action(self, data: Data, what: str) -> None:
        """Execute one call, or a few that belong together.

        If there is no job for it, put or pop one instead.
        """
        if what in FOR_RUNS and not self.jids_in("running"):
            what = "shift"
        if what in FOR_WORK and not self.jids_in(*QUEUED):
            what = "put_several"
        if what in FOR_HELD and not self.jids_in("depends"):
            what = "put_blocked"
        if what in FOR_TEMPLATES and not self.recurs():
            what = "recur"
        getattr(self, what)(data)

    # Repeated calls

    def repeat(self, data: Data) -> None:
        """Repeat an earlier call, as a caller does that doesn't know whether it was executed."""
        if self.requests:
            words, given = self.requests[-self.one(data, [1, 1, 2], "back") :][0]
            self.do(*words, **given)

    # Reads

    def ask_when_due(self, data: Data) -> None:
        self.something_is_due(data)
        self.ask_for_listings(data)
        self.ask_for_counts(data)

    def ask_for_jobs(self, data: Data) -> None:
        for jid in self.jids_in(*ALL_STATES):
            self.do("get", jid=jid)
        self.do("get", jid="unknown")
        self.do("multiget", jids=["unknown", *JIDS[::-1]])
        self.do("track", "list")
        self.do("failed")
        for group in sorted(self.model.members("failures")) or ["g1"]:
            self.do("failed", group=group)
            self.do("failed", group=group, offset=1, count=1)

    def ask_for_listings(self, data: Data) -> None:
        wanted = self.one(
            data, [{}, {"offset": 1}, {"offset": 0, "count": 2}, {"offset": 1, "count": 1}], "page"
        )
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
        self.do("queues", now=self.now, totals="today")
        self.do("queues", now=self.now, queue="", offset=1, count=1)
        self.do("workers", now=self.now)
        for worker in [*WORKERS, "unknown"]:
            self.do("workers", now=self.now, worker=worker)
        for session in SESSIONS:
            self.do("reservation", queue=QUEUES[0], worker=session, now=self.now)
        for template in TEMPLATES:
            self.do("recur", "get", jid=template)
        self.do("config", "get")
        for option in OPTIONS:
            self.do("config", "get", option=option)
