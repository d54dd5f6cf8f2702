"""OpenLineage events, as a server receives them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake")
pytest.importorskip("openlineage.client")

from aioqless.contrib.lake import lineage
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.lineage import Dataset, emit_run
from aioqless.contrib.lake.storage import Storage
from tests.contrib.lake.lakes import LATE, archive

READ, WRITTEN = [Dataset("file", "/lake/bronze/events")], [Dataset("file", "/lake/silver/runs")]


class Collector(ThreadingHTTPServer):
    """Keeps the events that are posted; answers when `answers` is set."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.events: list[dict[str, Any]] = []
        self.answers = threading.Event()
        self.answers.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def states(self) -> list[str]:
        return [event["eventType"] for event in self.events]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.answers.wait(60)
        self.server.events.append(event)
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An environment without OpenLineage's variables, to which its client adds some."""
    monkeypatch.setenv("HOME", str(tmp_path))  # where a configuration of its own may be
    yield
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE__")]:
        del os.environ[name]


@pytest.fixture
def collector(environment: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("OPENLINEAGE_URL", server.url)
        yield server
        server.answers.set()
        server.shutdown()
        thread.join()


def test_a_command_sends_events_with_the_tables_that_it_reads_and_writes(
    collector: Collector, tmp_path: Path
) -> None:
    lake = Lake(tmp_path / "lake", create=True)
    archive(lake, *LATE)
    command = [sys.executable, "-m", "aioqless", "lake", "tables", "--lake", lake.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert "OpenLineage" not in done.stderr
    start, end = collector.events
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == end["run"]["runId"]
    assert (start["job"]["namespace"], start["job"]["name"]) == ("aioqless", "lake.tables")
    assert [(each["namespace"], each["name"]) for each in end["inputs"]] == [
        ("file", f"{lake.url}/bronze/events")
    ]
    written = {each["name"].removeprefix(f"{lake.url}/") for each in end["outputs"]}
    assert {"silver/runs", "gold/klasses", "gold/throughput"} <= written


def test_a_run_that_fails_or_is_interrupted_sends_it(collector: Collector) -> None:
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), emit_run("job", READ, WRITTEN, pytest.fail):
            raise error
    assert collector.states() == ["START", "FAIL", "START", "ABORT"]


def test_a_collector_that_does_not_answer_holds_the_run_up_for_a_limited_time(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage, "_LONGEST_WAIT", 0.2)
    collector.answers.clear()
    reported: list[str] = []
    began = time.monotonic()
    with emit_run("job", READ, WRITTEN, reported.append):
        pass
    assert time.monotonic() - began < 20
    assert reported == ["OpenLineage events were not sent: no answer within 0.2 s"]


def test_events_that_can_not_be_sent_are_reported_and_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", "no URL")
    reported: list[str] = []
    with emit_run("job", READ, WRITTEN, reported.append):
        pass
    (line,) = reported
    assert line.startswith("OpenLineage events were not sent: ")


def test_nothing_is_sent_or_imported_without_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "_send", pytest.fail)
    with emit_run("job", READ, WRITTEN, pytest.fail):
        pass


def test_datasets_have_the_names_of_tables_and_no_password() -> None:
    assert Dataset.of_table(Storage("s3a://bucket/my/lake/gold/klasses")) == Dataset(
        "s3://bucket", "my/lake/gold/klasses"
    )
    assert Dataset.of_archive("redis://me:secret@host:6380/1", "ql") == Dataset(
        "redis://host:6380", "ql/archive"
    )
    assert Dataset.of_archive(None, "ql") == Dataset("redis", "ql/archive")
