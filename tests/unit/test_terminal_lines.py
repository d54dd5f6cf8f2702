"""Failures in tables and lines of the terminal."""

from __future__ import annotations

import pytest

from aioqless.cli.presentation.event_output import describe_event
from aioqless.cli.presentation.printing import print_table
from aioqless.client.events import Failed


def test_failure_is_shown_by_the_last_line_of_its_traceback() -> None:
    message = (
        f'Traceback (most recent call last):\n  File "{"long/" * 30}jobs.py", line 31, '
        f"in charge\nKeyError: 'amount'\n"
    )
    told = describe_event(
        Failed(when=0, jid="a", worker="w", group="billing-KeyError", message=message)
    )
    assert told.endswith("message=KeyError: 'amount'")


def test_group_is_not_truncated_in_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    group = "billing-" + "X" * 30 + "Error"
    monkeypatch.setattr("aioqless.cli.presentation.printing.UNLIMITED_WIDTH", 40)
    print_table(["count", "group", "latest"], [(1, group, "9 s ago")], empty="")
    assert group in "".join(line[7:33].strip() for line in capsys.readouterr().out.splitlines())
