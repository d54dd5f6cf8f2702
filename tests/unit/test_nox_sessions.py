"""The noxfile names tests that exist."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.sharing import HEAVY

ROOT = Path(__file__).parents[2]


def test_lowest_session_runs_tests_that_exist() -> None:
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    (smoke,) = (
        ast.literal_eval(statement.value)
        for statement in tree.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "SMOKE"
    )
    assert len(smoke) > 3
    assert [path for path in smoke if not (ROOT / path).exists()] == []


def test_folders_and_files_that_are_scheduled_first_exist() -> None:
    assert [name for group in HEAVY for name in group if not (ROOT / name).exists()] == []
