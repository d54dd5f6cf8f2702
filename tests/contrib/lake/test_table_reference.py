"""The reference of the lake's tables in docs."""

from __future__ import annotations

from tests.contrib.lake.table_reference import PAGE, render


def test_the_reference_of_tables_is_up_to_date() -> None:
    command = "python -m tests.contrib.lake.table_reference"
    assert PAGE.read_text("utf-8") == render(), f"`{command}` writes it"
