"""Wrong arguments of handlers are found by type checkers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

MISTAKES = Path(__file__).with_name("mistakes.py")
WRONG = {
    number
    for number, line in enumerate(MISTAKES.read_text("utf-8").splitlines(), 1)
    if "# wrong:" in line
}


def printed(*command: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", *command, str(MISTAKES)], capture_output=True, text=True, check=False
    ).stdout


def test_mypy_finds_each_mistake_and_nothing_else(tmp_path: Path) -> None:
    output = printed("mypy", "--strict", "--cache-dir", str(tmp_path), "--no-error-summary")
    assert {int(line) for line in re.findall(r"mistakes\.py:(\d+): error", output)} == WRONG, output


def test_pyright_finds_each_mistake_and_nothing_else(tmp_path: Path) -> None:
    project = tmp_path / "pyrightconfig.json"
    settings = {
        "typeCheckingMode": "standard",
        "include": [str(MISTAKES)],
        "extraPaths": [str(MISTAKES.parents[2])],
    }
    project.write_text(json.dumps(settings), "utf-8")
    output = printed(
        "basedpyright",
        "--outputjson",
        "--level",
        "error",
        "--project",
        str(project),
        "--pythonpath",
        sys.executable,
    ).strip()
    found = json.loads(output)["generalDiagnostics"]
    assert {each["range"]["start"]["line"] + 1 for each in found} == WRONG, found
