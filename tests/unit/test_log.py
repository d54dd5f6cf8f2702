"""The table of events says what is logged."""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Iterator

import pytest
import structlog

from aioqless.runtime import log
from tests.unit.source import FILES, tree_of

LEVELS = ("debug", "info", "warning", "error")


def table() -> dict[str, tuple[str, set[str]]]:
    """Event → level and fields, as the docstring has them."""
    rows = [line.split() for line in (log.__doc__ or "").splitlines() if line.startswith("    ")]
    return {event: (level, set(fields)) for event, level, *fields in rows[1:]}


def logged() -> Iterator[tuple[str, str, set[str], bool]]:
    """Event, level, fields and whether there are more, of every line that the code logs."""
    for file in FILES:
        for node in ast.walk(tree_of(file)):
            match node:
                case ast.Call(func=ast.Attribute(value=logger, attr=level)) if (
                    level in LEVELS
                    and ast.unparse(logger)
                    in (
                        "log",
                        "log.log",
                    )
                ):
                    named = {keyword.arg for keyword in node.keywords if keyword.arg}
                    yield (
                        str(ast.literal_eval(node.args[0])),
                        level,
                        named,
                        any(keyword.arg is None for keyword in node.keywords),
                    )
                case ast.Call(
                    func=ast.Name("End"),
                    args=[
                        ast.Constant(str(level)),
                        ast.Constant(str(event)),
                        ast.Dict(keys=keys),
                    ],
                ):  # how a run ended
                    fields = {str(ast.literal_eval(key)) for key in keys if key is not None}
                    yield event, level, {"seconds", *fields}, False


def test_the_table_of_events_is_what_the_code_logs() -> None:
    assert set(table()) == {event for event, *_ in logged()}


@pytest.mark.parametrize(("event", "level", "fields", "more"), sorted(logged(), key=str))
def test_an_event_has_the_level_and_the_fields_of_the_table(
    event: str, level: str, fields: set[str], more: bool
) -> None:
    told_level, told_fields = table()[event]
    assert level == told_level
    assert fields <= told_fields if more else fields == told_fields


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def written(**options: object) -> str:
    stream = io.StringIO()
    log.write_to(stream, **options)  # type: ignore[arg-type]
    with log.bound(jid="a"):
        structlog.get_logger().info("job.started", seconds=1)
        structlog.get_logger().debug("outcomes.stored")
    return stream.getvalue()


def test_what_is_no_terminal_gets_json_with_what_is_bound() -> None:
    (line,) = written().splitlines()
    told = json.loads(line)
    assert (told["event"], told["level"], told["jid"], told["seconds"]) == (
        "job.started",
        "info",
        "a",
        1,
    )
    assert told["timestamp"]


def test_people_get_lines_to_read() -> None:
    assert "job.started" in written(as_json=False) and not written(as_json=False).startswith("{")


def test_a_file_gets_no_colours() -> None:
    assert "\x1b" not in written(as_json=False)


def test_a_level_lets_through_what_is_at_least_as_grave() -> None:
    assert len(written(level="debug").splitlines()) == 2
    assert written(level="error") == ""
