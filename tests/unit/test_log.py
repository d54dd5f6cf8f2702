"""Log output and the table of log events."""

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
    """Return level and fields of each event in the docstring."""
    rows = [line.split() for line in (log.__doc__ or "").splitlines() if line.startswith("    ")]
    return {event: (level, set(fields)) for event, level, *fields in rows[1:]}


def logged() -> Iterator[tuple[str, str, set[str], bool]]:
    """Yield event, level, fields, and whether there are more, of every log call."""
    for file in FILES:
        for node in ast.walk(tree_of(file)):
            match node:
                case ast.Call(func=ast.Attribute(value=logger, attr=level)) if (
                    level in LEVELS and ast.unparse(logger) in ("log", "log.log")
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


LOGGED = list(logged())


def test_table_of_events_matches_the_code() -> None:
    assert set(table()) == {event for event, *_ in LOGGED}


@pytest.mark.parametrize(("event", "level", "fields", "more"), sorted(LOGGED, key=str))
def test_events_have_the_level_and_fields_of_the_table(
    event: str, level: str, fields: set[str], more: bool
) -> None:
    table_level, table_fields = table()[event]
    assert level == table_level
    assert fields <= table_fields if more else fields == table_fields


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


def test_terminal_output_is_readable_lines() -> None:
    assert "job.started" in written(as_json=False) and not written(as_json=False).startswith("{")


def test_file_output_has_no_colors() -> None:
    assert "\x1b" not in written(as_json=False)


def test_level_filters_less_severe_events() -> None:
    assert len(written(level="debug").splitlines()) == 2
    assert written(level="error") == ""
