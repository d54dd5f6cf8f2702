"""Log records, log output and the table of log events."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from aioqless.runtime import log
from tests.pages import ROOT, blocks

MONITORING = ROOT / "docs" / "monitoring.md"


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def written(**options: Any) -> str:
    stream = io.StringIO()
    log.write_to(stream, **options)
    with log.bound(jid="a"):
        log.log.info("job.started", seconds=1)
        log.log.debug("outcomes.stored")
    return stream.getvalue()


def test_output_other_than_a_terminal_is_json_with_bound_fields() -> None:
    (line,) = written().splitlines()
    told = json.loads(line)
    assert (told["event"], told["level"], told["jid"], told["seconds"]) == (
        "job.started",
        "info",
        "a",
        1,
    )
    assert told["timestamp"]


def test_level_filters_less_severe_events() -> None:
    assert len(written(level="debug").splitlines()) == 2
    assert written(level="error") == ""


@pytest.mark.parametrize("log_it", ["logging", "structlog"])
def test_lines_of_handlers_have_the_format_of_events_and_the_bound_fields(log_it: str) -> None:
    stream = io.StringIO()
    log.write_to(stream, process=2)
    with log.bound(jid="a"):
        if log_it == "logging":
            logging.getLogger("shop").info("charged %s", 5, extra={"card": "x"})
        else:
            structlog.get_logger("shop").info("charged 5", card="x")
    line = json.loads(stream.getvalue())
    assert line.pop("timestamp")
    logger = {"logger": "shop"} if log_it == "logging" else {}
    assert line == {
        "event": "charged 5", "card": "x", "jid": "a", "process": 2, "level": "info", **logger,
    }  # fmt: skip


@pytest.mark.parametrize("logger", ["log", "logging", "structlog"])
@pytest.mark.parametrize("names", ["worker queue klass jid user", "jid user klass queue worker"])
def test_fields_have_the_same_order_in_each_line(logger: str, names: str) -> None:
    stream = io.StringIO()
    log.write_to(stream, process=2)
    with log.bound(**dict.fromkeys(names.split(), "x")):
        match logger:
            case "log":
                log.log.info("job.retried", seconds=1, delay=2)
            case "logging":
                logging.getLogger("shop").info("charged", extra={"seconds": 1, "delay": 2})
            case "structlog":
                structlog.get_logger().info("charged", seconds=1, delay=2)
    line = list(json.loads(stream.getvalue()))
    assert line[:7] == ["timestamp", "level", "event", "jid", "klass", "queue", "worker"]
    assert line.index("seconds") < line.index("delay")


def test_console_lines_begin_with_the_job_and_the_worker() -> None:
    stream = io.StringIO()
    log.write_to(stream, as_json=False)
    with log.bound(worker="w", jid="a"):
        log.log.info("job.retried", seconds=1, delay=2)
    assert stream.getvalue().split()[1:] == [
        "[info", "]", "job.retried", "jid=a", "worker=w", "seconds=1", "delay=2",
    ]  # fmt: skip


def test_events_of_the_worker_itself_have_no_fields_of_a_job() -> None:
    stream = io.StringIO()
    log.write_to(stream)
    with log.bound(worker="w", jid="a", klass="Greet", queue="mail"):
        log.log.error("worker.redis_lost", error="gone")
        log.log.warning("queue.unserved", queue="post", why="nobody")
        log.log.error("hook.failed", hook="f", end="job.failed", error="x")
    lost, unserved, hook = map(json.loads, stream.getvalue().splitlines())
    assert not {"jid", "klass", "queue"} & set(lost) and lost["worker"] == "w"
    assert unserved["queue"] == "post" and "jid" not in unserved
    assert (hook["jid"], hook["klass"], hook["queue"]) == ("a", "Greet", "mail")


def test_colored_copy_of_a_message_is_left_out() -> None:
    stream = io.StringIO()
    log.write_to(stream)
    logging.getLogger("server_of_this_test").info(
        "Started server process [%d]", 5, extra={"color_message": "Started \x1b[36m%d\x1b[0m"}
    )
    assert "color_message" not in json.loads(stream.getvalue())


def test_traceback_in_a_message_of_logging_has_lines(caplog: pytest.LogCaptureFixture) -> None:
    log.log.warning("job.failed", message="Traceback:\n  a line\nError: \x1b[2J", seconds=1)
    assert caplog.messages == [
        "job.failed seconds=1 message=\n    Traceback:\n      a line\n    'Error: \\x1b[2J'"
    ]


def test_traceback_is_a_field_of_the_line() -> None:
    stream = io.StringIO()
    log.write_to(stream)
    try:
        raise ValueError("it broke")
    except ValueError:
        log.log.error("web.page_failed", exc_info=True)
    assert "ValueError: it broke" in json.loads(stream.getvalue())["exception"]


def test_record_has_the_fields_as_attributes_and_in_its_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with log.bound(jid="a"):
        log.log.warning("job.failed", group="typo", message="50% %s off", process=1)
    (record,) = caplog.records
    assert record.name == "aioqless.job" and record.filename == "test_log.py"
    assert record.getMessage() == "job.failed jid=a group=typo message='50% %s off' process=1"
    assert record.msg == "job.failed %s"  # what Sentry groups by
    fields = vars(record)
    assert (fields["event"], fields["group"], fields["jid"]) == ("job.failed", "typo", "a")
    # logging has attributes of its own by these names
    assert (fields["message_"], fields["process_"]) == ("50% %s off", 1)
    assert fields["process"] != 1


def test_event_without_fields_is_its_own_message(caplog: pytest.LogCaptureFixture) -> None:
    log.log.warning("worker.loop_resumed")
    assert caplog.messages == ["worker.loop_resumed"]


def test_structlog_formatter_of_a_program_sees_events_and_fields() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(sort_keys=True),
            ],
        )
    )
    logging.getLogger().handlers[:] = [handler]
    log.log.warning("archive.cut", after="1-0", entries=3)
    assert json.loads(stream.getvalue()) == {"after": "1-0", "entries": 3, "event": "archive.cut"}


def test_levels_of_loggers_decide_which_events_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    logging.getLogger("aioqless.job").setLevel(logging.ERROR)
    try:
        log.log.info("job.started")
        log.log.info("worker.stopped")
        log.log.write("warning", "job.failed", {})
    finally:
        logging.getLogger("aioqless.job").setLevel(logging.NOTSET)
    assert caplog.messages == ["worker.stopped"]


def test_handler_that_raises_is_counted_and_changes_nothing() -> None:
    seen: list[str] = []

    class Broken(logging.Handler):
        def handle(self, record: logging.LogRecord) -> bool:
            if record.getMessage() == "worker.stopped":
                raise OSError(28, "No space left on device")
            seen.append(record.getMessage())
            return True

    logger = logging.getLogger("aioqless")
    logger.addHandler(broken := Broken())
    try:
        log.log.warning("worker.stopped")
        log.log.warning("worker.stopped")
        log.log.warning("worker.loop_resumed")
    finally:
        logger.removeHandler(broken)
    assert seen == [
        "worker.loop_resumed",
        "log.lines_dropped lines=2 error='No space left on device'",
    ]


def test_only_warnings_are_printed_by_a_program_that_configures_no_logging() -> None:
    code = """
from aioqless import Client, Worker
from aioqless.runtime.log import log
log.debug("poller.popped")
log.info("job.started")
log.warning("archive.cut", entries=3)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert (ended.stdout, ended.stderr) == ("", "archive.cut entries=3\n")


def test_filter_of_the_page_adds_the_job_and_keeps_fields_of_aioqless() -> None:
    (configuration,) = (block for block in blocks(MONITORING, "python") if "def add_job(" in block)
    code = f"""{configuration}
from aioqless.runtime.log import log
from structlog.contextvars import bound_contextvars
with bound_contextvars(jid="outer", klass="app.greet", queue="mail"):
    logging.getLogger("app").info("my own line")
    log.info("job.completed", jid="inner")
logging.getLogger("app").info("outside of a run")
"""
    program = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    mine, of_aioqless, outside = program.stderr.splitlines()
    assert mine == "INFO app [outer] my own line"
    assert of_aioqless.startswith("INFO aioqless.job [inner] job.completed jid=inner")
    assert outside == "INFO app [None] outside of a run"
