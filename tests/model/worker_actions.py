"""Actions of producers and workers: they put, pop, and end the jobs that they run."""

import json

from tests.model.driver import Data, Driver
from tests.model.names import (
    ALL_STATES,
    AT_WORK,
    CHANGES,
    DATA,
    GROUPS,
    MESSAGE,
    QUEUES,
    TAG_LISTS,
    TAGS,
    TEMPLATES,
    WORKERS,
)
from tests.model.namespace import Place


class WorkerActions(Driver):
    """Actions from `put` to `release`."""

    # Put

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
            on_failure=self.branch(data),
        )

    def put_several(self, data: Data) -> None:
        queue = self.one(data, QUEUES, "queue")
        for _ in range(3):
            jid = self.free_jid(data)
            self.do(
                "put",
                queue=queue,
                jid=jid,
                klass="K",
                data="{}",
                now=self.now,
                delay=0,
                retries=1,
                on_failure=self.branch(data),
            )

    def put_many(self, data: Data) -> None:
        batch = [
            {"jid": self.free_jid(data), "klass": "K", "data": self.one(data, DATA, "data")}
            for _ in range(3)
        ]
        batch[1] |= self.one(
            data, [{"delay": 5}, {"delay": -1}, {"priority": -3, "tags": TAG_LISTS[1]}], "second"
        )
        depends = json.dumps([batch[0]["jid"]])
        batch[2] |= self.one(data, [{}, {"retries": 0, "depends": depends}, {"klass": ""}], "third")
        self.change(
            data, "put_many", queue=self.one(data, QUEUES, "queue"), now=self.now, batch=batch
        )

    def put_blocked(self, data: Data) -> None:
        """Put a job with dependencies in any state."""
        jid = self.free_jid(data)
        others = [other for other in self.jids_in(*AT_WORK) if other != jid]
        given = {
            "queue": self.one(data, QUEUES, "queue"),
            "jid": jid,
            "klass": "K",
            "data": "{}",
            "now": self.now,
        }
        self.do(
            "put",
            **given | {"delay": self.one(data, [0, 5], "delay"), "depends": json.dumps(others[:2])},
        )

    def requeue(self, data: Data) -> None:
        jid = self.jid(data, *ALL_STATES)
        queue = self.one(data, QUEUES, "queue")
        stage = self.stage(data, jid)
        stage["on_failure"] = self.branch(data)
        self.change(
            data, "requeue", queue=queue, jid=jid, klass="L", data="[]", now=self.now, **stage
        )

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

    # WorkerActions

    def pop(self, data: Data) -> None:
        queue, worker = self.one(data, QUEUES, "queue"), self.one(data, WORKERS, "worker")
        self.change(
            data,
            "pop",
            queue=queue,
            worker=worker,
            count=self.one(data, [1, 2, 3, 10], "count"),
            now=self.now,
        )

    def pop_late(self, data: Data) -> None:
        """Pop when the next lock has expired, or the next job is due."""
        self.something_is_due(data)
        worker = self.one(data, WORKERS, "worker")
        for queue in QUEUES:
            self.do("pop", queue=queue, worker=worker, count=2, now=self.now)

    def shift(self, data: Data) -> None:
        """Pop jobs as one worker and end or keep each."""
        queue, worker = self.one(data, QUEUES, "queue"), self.one(data, WORKERS, "worker")
        for job in self.do(
            "pop",
            queue=queue,
            worker=worker,
            count=self.one(data, [1, 2, 6], "count"),
            now=self.now,
        ):
            self.now += self.one(data, [0, 0, 1, 61], "it took")
            run = {"jid": job["jid"], "worker": worker, "now": self.now}
            ways = ["complete", "complete", "advance", "fail", "retry", "release", "keep", "keep"]
            match self.one(data, ways, "how"):
                case "complete":
                    self.do("complete", **run, queue=queue, data="")
                case "advance":
                    self.do(
                        "complete", **run, queue=queue, data="", next=self.one(data, QUEUES, "next")
                    )
                case "fail":
                    self.do("fail", **run, group="g1", message=MESSAGE, fence=job["fence"])
                case "retry":
                    self.do("retry", **run, queue=queue, delay=self.one(data, [0, 5], "delay"))
                case "release":
                    self.do("release", **run)

    def pop_many(self, data: Data) -> None:
        """Pop as a worker from all its queues, in order."""
        batch = [{"queue": queue} for queue in self.one(data, [QUEUES, QUEUES[::-1]], "queues")]
        batch[0] |= self.one(data, [{}, {"limit": 1}, {"limit": 0}], "first")
        worker, count = self.one(data, WORKERS, "worker"), self.one(data, [0, 1, 2, 3, 10], "count")
        order = self.one(data, ["ordered", "waiting"], "order")
        self.change(
            data, "pop_many", worker=worker, count=count, now=self.now, order=order, batch=batch
        )

    def peek(self, data: Data) -> None:
        queue, count = self.one(data, QUEUES, "queue"), self.one(data, [0, 1, 2, 10], "count")
        kinds: tuple[Place, ...] = ("locks", "scheduled", "recur")
        due = any(
            score <= self.now for kind in kinds for score in self.model.place(queue, kind).values()
        )
        # How many jobs a later page moves is not specified.
        offset = None if due else self.one(data, [None, 0, 1, 2], "offset")
        self.change(data, "peek", queue=queue, count=count, now=self.now, offset=offset)

    def heartbeat(self, data: Data) -> None:
        self.change(data, "heartbeat", **self.run(data), data=self.one(data, [None, *DATA], "data"))

    def step(self, data: Data) -> None:
        self.change(
            data,
            "step",
            **self.run(data),
            kind=self.one(data, ["step", "cursor"], "kind"),
            name=self.one(data, ["one", "two"], "name"),
            result=self.one(data, ["1", '["x"]'], "result"),
        )

    def complete(self, data: Data) -> None:
        self.change(
            data,
            "complete",
            **self.run_in_queue(data),
            durable=self.one(data, ["1", None], "durable"),
            data=self.one(data, ["", "", *DATA], "data"),
        )

    def complete_many(self, data: Data) -> None:
        runs = [self.run_in_queue(data) for _ in range(3)]
        given = [
            {name: run[name] for name in ("jid", "queue", "fence") if run[name] is not None}
            for run in runs
        ]
        given[0] |= self.one(data, [{}, {"data": "[]"}, {"data": "false"}], "first")
        given[1] |= self.one(
            data, [{}, {"next": "a"}, {"next": "a", "delay": 5}, {"delay": 5}], "second"
        )
        self.change(data, "complete_many", worker=runs[0]["worker"], now=self.now, batch=given)

    def heartbeat_many(self, data: Data) -> None:
        runs = [self.run(data) for _ in range(3)]
        given = [
            {name: run[name] for name in ("jid", "fence") if run[name] is not None} for run in runs
        ]
        self.change(data, "heartbeat_many", worker=runs[0]["worker"], now=self.now, batch=given)

    def advance(self, data: Data) -> None:
        run = self.run_in_queue(data)
        stage = self.stage(data, run["jid"])
        self.change(data, "complete", **run, **stage, data="", next=self.one(data, QUEUES, "next"))

    def fail(self, data: Data) -> None:
        text = self.one(data, [None, *DATA], "data")
        self.change(
            data,
            "fail",
            **self.run(data),
            group=self.one(data, GROUPS, "group"),
            message=MESSAGE,
            data=text,
        )

    def retry(self, data: Data) -> None:
        said = self.one(data, [{}, {"group": "g1"}, {"group": "g1", "message": "again"}], "said")
        self.change(
            data,
            "retry",
            **self.run_in_queue(data),
            **said,
            delay=self.one(data, [None, 0, 5], "delay"),
        )

    def release(self, data: Data) -> None:
        self.change(data, "release", **self.run(data), delay=self.one(data, [None, 0, 5], "delay"))
