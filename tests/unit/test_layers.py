"""Imports point down only, and neighbours don't import each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from .source import FILES, PACKAGE, name_of, tree_of

LAYERS = [
    {"output", "errors"},
    {"log", "names", "replies", "embedded", "happening", "signals"},
    {"servers", "wire"},
    {"connection"},
    {"durability"},
    {"data"},
    {"retrying", "scripts", "sealing"},
    {"pubsub", "config", "intake", "archive", "acl"},
    {"events", "jobs", "puts", "clearing"},
    {"recurring", "flows"},
    {"queue"},
    {"client"},
    {"browsers"},
    {"handlers", "blocking", "outbox", "people"},
    {"worker"},
    {"processes", "pipeline", "web"},
    {"cli"},
    {"__main__", ""},
    {"extras", "testing"},
]
SERVERS = [{"address"}, {"connections"}, {"places", "sentinel", "cluster"}, {""}]
SCRIPTS = [{"header"}, {"spelling"}, {"libraries", "keys"}, {"compose"}, {"calls"}, {"scripts"}, {""}]
EVENTS = [{"kinds"}, {"wanted"}, {"stream"}, {"door"}, {""}]
JOBS = [{"record", "scratch", "followers", "reports", "glance"}, {"reading"}, {"following"}, {"job"}, {""}]
PUTS = [{"terms"}, {"new"}, {"puts"}, {"room"}, {""}]
RECURRING = [{"cron"}, {"schedules"}, {"job"}, {""}]
WORKER = [
    {"subscriptions"},
    {"settings", "outage", "run", "outcome", "executors.variables"},
    {"executors.parcels", "finisher", "pulse", "declarations", "stacks", "share", "incarnation", "eviction", "late", "unread"},
    {"executors.child", "executors.inside", "executors.threads"},
    {"executors.processes"},
    {"executors"},
    {"perform"},
    {"runner", "heart"},
    {"heartbeater", "poller", "orders", "scheduler", "intake"},
    {"listener"},
    {"worker"},
    {""},
]
CLI = [
    {"shutdown", "descriptors"},
    {"words", "completing", "signals", "given"},
    {"app", "bars", "printing", "shapes"},
    {"asking", "meant", "portrait", "process", "processes", "serving", "pipeline"},
    {"watching"},
    {"again", "worker", "workers", "jobs", "queues", "recurring", "keep", "intake", "outbox", "acl"},
    {
        "acting",
        "stats",
        "config",
        "tail",
        "redis",
        "web",
        "screen.terminal",
        "screen.looking",
        "pipeline_archive",
        "pipeline_put",
        "pipeline_tables",
    },
    {"screen.board"},
    {"screen.drawing"},
    {"screen"},
    {"top"},
    {""},
]
PEOPLE = [
    {"person"}, {"reservation", "fate"}, {"desk"}, {""},
    {"api.guard", "api.shapes"}, {"api.operations"}, {"api.openapi"}, {"api.app"}, {"api"},
]  # fmt: skip
PROCESSES = [{"line", "sources", "sandbox", "health"}, {"child"}, {"supervisor"}, {""}]
WEB = [
    {"passwords", "redaction", "wording", "throttle", "sampler", "attempts"},
    {"access", "drawing.lines", "drawing.bars", "drawing.stages", "drawing.graph"},
    {"drawing", "trail"},
    {"bulk"},
    {"board"},
    {"asked", "acts.act"},
    {"rendering", "notes"},
    {"live"},
    {"dashboard"},
    {"guard", "pages.overview", "pages.queue", "pages.jobs", "pages.lists", "pages.failures", "pages.workers", "pages.keeping"},
    {"pages.recurring", "acts.jobs", "acts.groups", "acts.queues", "acts.workers", "acts.recurring", "acts.config", "login"},
    {"pages", "acts"},
    {"app"},
    {""},
]
PIPELINE = [
    {"java", "schema", "shipping", "files", "source.options", "tables.clock", "tables.groups"},
    {"lake"},
    {"changes"},
    {"source.looping", "source.finding", "source.job_columns", "source.events", "source.making"},
    {"source.event_columns", "source.putting"},
    {"source.stream", "source.jobs", "source.summaries", "source.write"},
    {"source.source"},
    {"source"},
    {"home", "bronze"},
    {"session"},
    {"tables.bins", "tables.runs", "tables.jobs", "tables.counts", "tables.failures", "tables.throughput", "tables.paths"},
    {"tables.cells"},
    {"tables.times"},
    {"tables", "reading", "progress"},
    {"refresh", "archiver", "statistics", "compaction", "report.theme"},
    {"report.gathered", "report.charts"},
    {"report.page"},
    {"report"},
    {""},
]
WITHIN = {
    "servers": SERVERS,
    "scripts": SCRIPTS, "events": EVENTS, "jobs": JOBS, "puts": PUTS, "recurring": RECURRING,
    "worker": WORKER, "processes": PROCESSES, "cli": CLI,
    "pipeline": PIPELINE, "people": PEOPLE, "web": WEB,
}  # fmt: skip


def height(layers: list[set[str]], name: str) -> int:
    (found,) = [number for number, layer in enumerate(layers) if name in layer]
    return found


def imported(file: Path) -> Iterator[str]:
    """The package's modules that a file imports, at its top or later; what only the type checker sees is left out."""
    package = name_of(file) if file.name == "__init__.py" else name_of(file).rpartition(".")[0]
    todo: list[ast.AST] = [tree_of(file)]
    while todo:
        match node := todo.pop():
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import():
                yield from (each.name.partition("aioqless.")[2] for each in node.names if each.name.startswith("aioqless"))
            case ast.ImportFrom(level=0, module="aioqless"):
                yield from (each.name if any(each.name in layer for layer in LAYERS) else "" for each in node.names)
            case ast.ImportFrom(level=0, module=str(module)) if module.startswith("aioqless."):
                yield module.removeprefix("aioqless.")
            case ast.ImportFrom(level=1):
                yield f"{package}.{node.module}".strip(".")
        todo += ast.iter_child_nodes(node)


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_imports_point_down_only(file: Path) -> None:
    package, _, part = name_of(file).partition(".")
    for other in imported(file):
        below, _, inner = other.partition(".")
        if below != package:
            assert height(LAYERS, below) < height(LAYERS, package), f"{name_of(file)} imports {other}"
        elif layers := WITHIN.get(package):
            assert height(layers, inner) < height(layers, part), f"{name_of(file)} imports {other}"


def test_only_the_command_line_knows_of_argv_signals_and_exit() -> None:
    knowing = {
        name_of(file)
        for file in FILES
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.Attribute)
        and ast.unparse(node) in ("sys.argv", "sys.exit", "os._exit", "loop.add_signal_handler", "signal.signal")
    }
    processes = {"worker.executors.inside", "signals"}  # what runs there has no host
    assert {name.partition(".")[0] for name in knowing - processes} <= {"__main__", "cli", "embedded"}


def test_python_spells_no_key_but_those_that_scripts_are_given_and_channels() -> None:
    from aioqless.scripts.header import LUA

    sets = ("-work", "-scheduled", "-locks", "-depends", "-recur", ":queues", ":workers", ":completed", ":failures")
    for file in FILES:
        texts = [node.value for node in ast.walk(tree_of(file)) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        assert not [text for text in texts if text.endswith(sets) and " " not in text], name_of(file)
    assert (LUA / "lib" / "keys.lua").is_file() and PACKAGE.is_dir()
