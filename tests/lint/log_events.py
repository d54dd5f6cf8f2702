"""Check the table of log events: `python -m tests.lint.log_events`, which `nox -s lint` runs.

docs/reference/log-events.md lists each event once and in order, with its level and fields.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from tests.pages import ROOT
from tests.source import FILES, tree_of

PAGE = ROOT / "docs" / "reference" / "log-events.md"
LEVELS = ("debug", "info", "warning", "error")


def table() -> dict[str, tuple[str, set[str]]]:
    """Return level and fields of each event on the page."""
    rows = re.findall(
        r"^\| `(\w+\.\w+)` \| (debug|info|warning|error) \| (.*?) \| \S",
        PAGE.read_text("utf-8"),
        re.MULTILINE,
    )
    return {event: (level, set(re.findall(r"`(\w+)`", fields))) for event, level, fields in rows}


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
                    func=ast.Attribute(attr="log"),
                    args=[ast.Constant(str(level)), ast.Constant(str(event))],
                ):  # an outage; that of a node has more fields
                    yield event, level, {str(each.arg) for each in node.keywords}, True
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


def problems() -> Iterator[str]:
    listed = re.findall(r"^\| `(\w+\.\w+)` \| \w+ \|", PAGE.read_text("utf-8"), re.MULTILINE)
    if listed != sorted(set(listed)):
        yield "docs/reference/log-events.md: the events are not in order, or one is listed twice"
    known, calls = table(), list(logged())
    for event in sorted(known.keys() ^ {event for event, *_ in calls}):
        yield f"docs/reference/log-events.md and the code differ on {event}"
    for event, level, fields, more in calls:
        table_level, table_fields = known.get(event, (level, fields))
        if level != table_level:
            yield f"{event}: its level is {level}, in the table {table_level}"
        if not (fields <= table_fields if more else fields == table_fields):
            yield f"{event}: its fields are {sorted(fields)}, in the table others"


def main() -> int:
    found = list(problems())
    for problem in found:
        print(problem)
    return len(found) > 0


if __name__ == "__main__":
    sys.exit(main())
