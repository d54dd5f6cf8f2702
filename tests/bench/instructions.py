"""The instructions of the server for each command, counted by callgrind.

They don't depend on the load of the machine, so two commits can be compared: each writes a file by
`python -m tests.bench.instructions FILE`, and `python -m tests.bench.instructions BEFORE AFTER`
prints a table. Each figure is the mean of 20 calls in a namespace of some hundred jobs. Counted is
what the server does from reading a request until its reply is ready; its timers aren't.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from redis import Redis
from redis.backoff import ConstantBackoff
from redis.exceptions import ConnectionError as NotConnected
from redis.retry import Retry

from aioqless.store import OfflineStore
from aioqless.store.command_header import command_names
from aioqless.store.script_composer import compose
from tests.command_calls import make_call
from tests.server import free_port

CALLS = 20
JOBS = 200
DATA = '{"id":12345,"email":"someone@example.com"}'
MARK = 1.03  # a command that gets dearer than this times its former figure is marked
Arguments: TypeAlias = dict[str, Any]

LIMITS = '{"limits":[{"key":"k","limit":1000},{"key":"tokens","rate":[1000000,60],"cost":5}]}'

_JOB: Arguments = {"klass": "Greet", "data": DATA}
_RUN: Arguments = {"worker": "ann", "now": None}
_DECLARED: Arguments = {
    "queue": "mail", "klass": "Greet", "data": DATA, "now": None, "next": 5e9,
}  # fmt: skip
_CHILD = '{"queue":"mail","klass":"Charge","data":"{}"}'
_HELD: Arguments = {"worker": "person:ann", "now": None}


def _jid(kind: str) -> Callable[[int], Arguments]:
    return lambda n: {"jid": f"{kind}{n}"}


def _none(_: int) -> Arguments:
    return {}


def _emitted(n: int) -> Arguments:
    """Return a row of `emit`, for the run that was popped as the nth."""
    values = {"start": 0, "count": 5, "values": '["a ","few ","tokens ","are ","sent "]'}
    return {"jid": f"r{n}", "fence": str(n + 1), "ttl": 60, **values}


def _counted(n: int) -> tuple[str, str, list[int]]:
    """Return a row of the counts of a beat: 20 runs of one klass."""
    values = [0, 1, 40_000, 90_000, 18, 3, 19, 7, 20, 6, 21, 3, 22, 1, 75, 4, 76, 9, 77, 5, 78, 2]
    return "mail", f"K{n}", values


# The calls of each form: the command, its word, the arguments of all calls, those of one.
# Jobs named w wait, r run, p run with two limits, m run as members of a set, f failed, c are
# complete, t recur.
_Each: TypeAlias = tuple[str, str | None, Arguments, Callable[[int], Arguments]]
MEASURED: dict[str, _Each] = {
    "put": ("put", None, {"queue": "mail", **_JOB, "now": None}, _jid("n")),
    "put, delayed": ("put", None, {"queue": "mail", **_JOB, "now": None, "delay": 60}, _jid("n")),
    "put, tags, priority": (
        "put", None,
        {"queue": "mail", **_JOB, "now": None, "tags": '["a","b"]', "priority": 5}, _jid("n"),
    ),
    "put_many of 10": (
        "put_many", None, {"queue": "mail", "now": None},
        lambda n: {"batch": [{"jid": f"n{n}x{i}", **_JOB} for i in range(10)]},
    ),
    "put_flow": (
        "put_flow", None, {"now": None},
        lambda n: {"batch": [{"queue": "mail", "jid": f"n{n}x{i}", **_JOB} for i in range(3)]},
    ),
    "requeue": ("requeue", None, {"queue": "other", **_JOB, "now": None}, _jid("w")),
    "move": ("move", None, {"queue": "other", "now": None}, _jid("w")),
    "pop": ("pop", None, {"queue": "mail", "count": 1, **_RUN}, _none),
    "pop, limits": ("pop", None, {"queue": "limited", "count": 1, **_RUN}, _none),
    "pop_many of 1": (
        "pop_many", None, {"count": 1, "order": "waiting", **_RUN},
        lambda _: {"batch": [{"queue": "mail"}]},
    ),
    "pop_many of 5": (
        "pop_many", None, {"count": 5, "order": "ordered", **_RUN},
        lambda _: {"batch": [{"queue": "mail"}, {"queue": "other"}]},
    ),
    "heartbeat": ("heartbeat", None, _RUN, _jid("r")),
    "heartbeat, data": ("heartbeat", None, {**_RUN, "data": DATA}, _jid("r")),
    "heartbeat_many of 2": (
        "heartbeat_many", None, _RUN,
        lambda n: {"batch": [{"jid": f"r{2 * n}"}, {"jid": f"r{2 * n + 1}"}]},
    ),
    "complete": ("complete", None, {"queue": "run", **_RUN}, _jid("r")),
    "complete, limits": ("complete", None, {"queue": "limited", **_RUN}, _jid("p")),
    "complete, next": ("complete", None, {"queue": "run", "next": "mail", **_RUN}, _jid("r")),
    "complete_many of 1": (
        "complete_many", None, _RUN, lambda n: {"batch": [{"jid": f"r{n}", "queue": "run"}]},
    ),
    "complete_many of 5": (
        "complete_many", None, _RUN,
        lambda n: {"batch": [{"jid": f"r{5 * n + i}", "queue": "run"} for i in range(5)]},
    ),
    "emit of 1": ("emit", None, _RUN, lambda n: {"batch": [_emitted(n)]}),
    "emit of 5": (
        "emit", None, _RUN, lambda n: {"batch": [_emitted(5 * n + i) for i in range(5)]},
    ),
    "emit_end": (
        "emit_end", None, _RUN,
        lambda n: {"jid": f"r{n}", "fence": str(n + 1), "start": 5, "values": "[]", "ttl": 60},
    ),
    "output": ("output", None, {}, _jid("r")),
    "charge": ("charge", None, {"key": "tokens", "used": 3, **_RUN}, _jid("p")),
    "fail": ("fail", None, {"group": "g", "message": "no", **_RUN}, _jid("r")),
    "retry": ("retry", None, {"queue": "run", "delay": 0, **_RUN}, _jid("r")),
    "release": ("release", None, _RUN, _jid("r")),
    "decline": (
        "decline", None,
        {"delay": 1, "timeout": 60, "group": "g", "message": "no", **_RUN}, _jid("r"),
    ),
    "step": ("step", None, {"kind": "step", "name": "plan", "result": DATA, **_RUN}, _jid("r")),
    "step, later": (
        "step", None, {"kind": "step", "result": DATA, **_RUN},
        lambda n: {"jid": f"r{CALLS}", "name": f"step {n}"},
    ),
    "steps": ("steps", None, {}, _jid("r")),
    "wait": ("wait", None, {"wait_kind": "wait", "name": "go", "timeout": 60, **_RUN}, _jid("r")),
    "call": ("call", None, {"name": "charge", "child": _CHILD, **_RUN}, _jid("r")),
    "signal": ("signal", None, {"name": "approval", "result": DATA, "now": None}, _jid("w")),
    "dependency_failures": ("dependency_failures", None, {}, lambda n: {"jids": [f"f{n}"]}),
    "on_failure": ("on_failure", "off", {"klasses": ["Retired"]}, _none),
    "timeout": ("timeout", None, {"now": None}, lambda n: {"jids": [f"r{n}"]}),
    "log": ("log", None, {"message": "hello", "now": None}, _jid("w")),
    "cancel": ("cancel", None, {}, lambda n: {"jids": [f"w{n}"]}),
    "clear": (
        "clear", None,
        {"queue": "mail", "state": "waiting", "offset": 0, "now": None, "states": ["waiting"]},
        _none,
    ),
    "edit": ("edit", None, {"data": DATA, "now": None}, _jid("w")),
    "free_limits": ("free_limits", None, {"constraints": LIMITS, "now": None}, _jid("c")),
    "priority": ("priority", None, {"priority": 3}, _jid("w")),
    "tag add": ("tag", "add", {"now": None, "tags": ["a", "b"]}, _jid("w")),
    "tag get": ("tag", "get", {"tag": "a"}, _none),
    "tag top": ("tag", "top", {}, _none),
    "track": ("track", "track", {"now": None, "tags": []}, _jid("w")),
    "track list": ("track", "list", {}, _none),
    "depends on": ("depends", "on", {"jids": ["w199"]}, _jid("d")),
    "dependency_results": ("dependency_results", None, {}, _jid("d")),
    "get": ("get", None, {}, _jid("w")),
    "multiget": ("multiget", None, {}, lambda n: {"jids": [f"w{n}", f"r{n}", f"c{n}"]}),
    "result": ("result", None, {}, _jid("c")),
    "position": ("position", None, {"now": None}, _jid("w")),
    "states": ("states", None, {}, lambda n: {"jids": [f"w{n}", f"r{n}"]}),
    "glances": ("glances", None, {}, lambda n: {"jids": [f"w{n}", f"r{n}"]}),
    "jobs": ("jobs", None, {"state": "running", "now": None, "queue": "run"}, _none),
    "peek": ("peek", None, {"queue": "mail", "count": 5, "now": None}, _none),
    "find": ("find", None, {"conditions": '[{"key":"klass","values":[["Greet"]]}]'}, _none),
    "failed": ("failed", None, {}, _none),
    "failures": ("failures", None, {"names": ["g"]}, _none),
    "group": ("group", None, {"group": "g"}, _none),
    "unfail": ("unfail", None, {"queue": "mail", "group": "g", "now": None, "count": 1}, _none),
    "revive group": ("revive", "group", {"group": "g", "now": None, "count": 1}, _none),
    "revive job": ("revive", "job", {"now": None}, _jid("f")),
    "queues": ("queues", None, {"now": None}, _none),
    "queue_names": ("queue_names", None, {}, _none),
    "length": ("length", None, {"queue": "mail"}, _none),
    "ready": ("ready", None, {"queues": ["mail", "run"], "now": None}, _none),
    "lag": ("lag", None, {"queues": ["mail", "run"], "now": None}, _none),
    "delays": ("delays", None, {"queues": ["mail", "run"], "now": None}, _none),
    "stats": ("stats", None, {"queue": "run", "date": None}, _none),
    "days": ("days", None, {"queue": "run", "date": None}, _none),
    "tenants": ("tenants", None, {"queue": "mail", "now": None}, _none),
    "pause": ("pause", None, {"queues": ["mail"]}, _none),
    "unpause": ("unpause", None, {"queues": ["mail"]}, _none),
    "forget": ("forget", None, {"queues": ["empty"]}, _none),
    "config get": ("config", "get", {}, _none),
    "config set": ("config", "set", {"option": "heartbeat", "value": "60"}, _none),
    "workers": ("workers", None, {"now": None}, _none),
    "working": ("working", None, {"now": None, "most": 5, "workers": ["ann"]}, _none),
    "beat": ("beat", None, {"process": "{}", "queues": ["mail"], **_RUN}, _none),
    "beat, counts of 10": (
        "beat", None, {"process": "{}", "queues": ["mail"], **_RUN},
        lambda n: {"number": n + 1, "counts": json.dumps([_counted(i) for i in range(10)])},
    ),
    "deregister": ("deregister", None, {}, lambda n: {"workers": [f"b{n}"]}),
    "declare": (
        "declare", "interval", {**_DECLARED, "interval": 60}, _jid("n"),
    ),
    "recur get": ("recur", "get", {}, _jid("t")),
    "recur pause": ("recur", "pause", {"now": None}, _jid("t")),
    "recur run": ("recur", "run", {"now": None}, _jid("t")),
    "recur update": ("recur", "update", {"pairs": ["priority", "5"]}, _jid("t")),
    "recurring": ("recurring", None, {}, _none),
    "agenda": ("agenda", None, {"now": None}, _none),
    "tick": ("tick", None, {"now": None, "batch": []}, _none),
    "check": ("check", None, {"now": None}, _none),
    "archive_state": ("archive_state", None, {}, _none),
    "archive_trim": ("archive_trim", None, {"id": "0-1", "reader": "r", "now": None}, _none),
    "sweep": ("sweep", "completed", {}, _none),
    "remote_control": ("remote_control", "pause", {"worker": "ann"}, lambda n: {"answer": f"a{n}"}),
    "remote_reply": ("remote_reply", None, {"reply": "{}"}, lambda n: {"answer": f"a{n}"}),
    "audit_log": (
        "audit_log", "add", {"who": "ann", "act": "pause", "about": "{}", "outcome": ""}, _none,
    ),
    "limit_usage": ("limit_usage", None, {"queue": "mail", "now": None}, _none),
    "metrics": ("metrics", "periods", {"seconds": 60, "series": ["4:mail:K1"]}, _none),
    "mark": ("mark", None, {"text": "moved", "now": None}, _none),
    "import": ("import", "queues", {"prefix": "", "into": "", "now": None}, _none),
    "reserve": (
        "reserve", None,
        {"queue": "mail", "person": "ann", "limit": 60, "worker": "person:ann", "now": None},
        _none,
    ),
    "reservation": ("reservation", None, {"queue": "mail", **_HELD}, _none),
    "extend": ("extend", None, {"limit": 60, **_HELD}, _jid("h")),
    "hand_over": ("hand_over", None, {"to": "bob", "limit": 60, **_HELD}, _jid("h")),
    "skip": ("skip", None, {"person": "ann", **_HELD}, _jid("h")),
    "set_put of 10": (
        "set_put", None, {"set_name": "s", "now": None},
        lambda n: {"batch": [{"queue": "mail", "jid": f"n{n}x{i}", **_JOB} for i in range(10)]},
    ),
    "set_put_flow of 3": (
        "set_put_flow", None, {"set_name": "s", "now": None},
        lambda n: {"batch": [{"queue": "mail", "jid": f"f{n}x{i}", **_JOB} for i in range(3)]},
    ),
    "complete, member": ("complete", None, {"queue": "members", **_RUN}, _jid("m")),
    "set_close": ("set_close", None, {"set_name": "s", "now": None}, _none),
    "set_act": ("set_act", "retry", {"set_name": "s", "now": None, "cursor": 0}, _none),
    "set_status": ("set_status", "one", {"set_name": "s"}, _none),
}  # fmt: skip


class Called:
    """A server that is called with our scripts; it loads the data that is in its folder."""

    def __init__(self, folder: Path, *under: str) -> None:
        self._folder = folder
        self.port = port = free_port()
        options = f"--bind 127.0.0.1 --port {port} --save '' --hz 1 --dir {folder}".split(" ")
        options[options.index("''")] = ""
        self.process = subprocess.Popen(
            [*under, "redis-server", *options],
            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        patience = Retry(ConstantBackoff(0.1), 600, supported_errors=(NotConnected,))
        self.redis = Redis(port=port, retry=patience, socket_timeout=None)
        self.redis.ping()
        self._known: set[str] = set()
        self._store = OfflineStore()
        self._store.namespace = "ql"
        self._request = 0
        self._worker = self.redis.pubsub()
        self._worker.subscribe("ql:w:ann")  # remote control needs a worker that listens

    def call(self, command: str, word: str | None, arguments: Arguments) -> Any:
        """Send one call by EVALSHA, or EVAL the first time."""
        given = {name: value for name, value in arguments.items() if value is not None}
        call = make_call(self._store, command, word, **given)
        self._request += 1
        words = call.words(f"bench.{self.port}:{self._request}" if call.writes else None)
        script = compose(command, "ql")
        if command in self._known:
            return self.redis.execute_command("EVALSHA", script.sha, *words)
        self._known.add(command)
        return self.redis.execute_command("EVAL", script.text, *words)

    def end(self) -> None:
        """End the server."""
        self.process.terminate()
        self.process.wait()


class Counted(Called):
    """A server under callgrind."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            folder, "valgrind", "--tool=callgrind", "--callgrind-out-file=out",
            "--toggle-collect=readQueryFromClient",
        )  # fmt: skip

    def count(self) -> int:
        """Return the instructions since the previous count."""
        for old in self._folder.glob("out.*"):
            old.unlink()
        subprocess.run(
            ["callgrind_control", "-d", str(self.process.pid)],
            cwd=self._folder, check=True, capture_output=True,
        )  # fmt: skip
        (written,) = self._folder.glob("out.*")
        found = re.search(r"^(?:totals|summary): (\d+)", written.read_text(), re.MULTILINE)
        assert found is not None
        return int(found[1])

    def prepare(self) -> None:
        """Put jobs in all states, and recurring ones."""
        self.redis.flushdb()
        queues = ("run", "r"), ("done", "c"), ("bad", "f"), ("desk", "h"), ("limited", "p")
        for queue, kind in queues:
            more = {"constraints": LIMITS} if kind == "p" else {}
            jobs = [{"jid": f"{kind}{n}", **_JOB, **more} for n in range(JOBS)]
            self.call("put_many", None, {"queue": queue, "batch": jobs})
            worker = "person:ann" if kind == "h" else "ann"
            self.call("pop", None, {"queue": queue, "worker": worker, "count": JOBS})
        rows = [{"queue": "members", "jid": f"m{n}", **_JOB} for n in range(JOBS)]
        self.call("set_put", None, {"set_name": "s", "batch": rows})
        self.call("pop", None, {"queue": "members", "worker": "ann", "count": JOBS})
        done = [{"jid": f"c{n}", "queue": "done", "result": "60 1"} for n in range(JOBS)]
        self.call("complete_many", None, {"worker": "ann", "batch": done})
        for n in range(JOBS):
            failed = {"jid": f"f{n}", "worker": "ann", "group": "g", "message": "no"}
            self.call("fail", None, failed)
        jobs = [{"jid": f"l{n}", **_JOB, "constraints": LIMITS} for n in range(JOBS)]
        self.call("put_many", None, {"queue": "limited", "batch": jobs})
        jobs = [{"jid": f"w{n}", **_JOB} for n in range(JOBS)]
        self.call("put_many", None, {"queue": "mail", "batch": jobs})
        jobs = [{"jid": f"d{n}", **_JOB, "depends": '["w198"]'} for n in range(CALLS + 1)]
        self.call("put_many", None, {"queue": "mail", "batch": jobs})
        for n in range(CALLS + 1):
            job = {**_DECLARED, "jid": f"t{n}", "interval": 60}
            self.call("declare", "interval", job)


def measure() -> dict[str, int]:
    """Return the instructions of one call, by the names of MEASURED."""
    if missing := set(command_names()) - {each[0] for each in MEASURED.values()}:
        raise LookupError(f"no call is measured of {', '.join(sorted(missing))}")
    figures = {}
    with tempfile.TemporaryDirectory(prefix="aioqless-bench-") as folder:
        server = Counted(Path(folder))
        try:
            # The first one is measured twice: a server that has just started takes longer.
            for name in [next(iter(MEASURED)), *MEASURED]:
                command, word, shared, each = MEASURED[name]
                server.prepare()
                server.call(command, word, {**shared, **each(CALLS)})
                server.count()
                for n in range(CALLS):
                    server.call(command, word, {**shared, **each(n)})
                figures[name] = server.count() // CALLS
                print(f"{name:22} {figures[name]:11,}", flush=True)
        finally:
            server.end()
    return figures


def main(*files: str) -> None:
    """Measure into one file, or compare two."""
    if len(files) == 1:
        Path(files[0]).write_text(json.dumps(measure(), indent=1))
        return
    before, after = (json.loads(Path(file).read_text()) for file in files)
    print("| call | before | after | ratio |\n|---|---|---|---|")
    for name in after:
        ratio = after[name] / before[name]
        mark = " dearer" if ratio > MARK else ""
        print(f"| {name} | {before[name]:,} | {after[name]:,} | {ratio:.3f}{mark} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
