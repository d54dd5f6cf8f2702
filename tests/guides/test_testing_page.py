"""The tests on docs/testing.md pass in another project."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks
from tests.projects import run_pytest


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with each example of the page in a file."""
    for number, block in enumerate(blocks(ROOT / "docs" / "testing.md", "python")):
        line = block.partition("\n")[0]
        name = line[2:] if line.startswith("# ") else f"test_{number}.py"
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(block)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    return tmp_path


def test_tests_of_the_page_pass(project: Path) -> None:
    assert "9 passed" in run_pytest(project)


@pytest.mark.long
def test_recipe_for_fastapi_passes_strict_mypy(project: Path) -> None:
    words = ["--strict", "--cache-dir", str(project / "cache"), "-m", "app.main", "-m", "test_main"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *words],
        cwd=project,
        env={**os.environ, "PYTHONPATH": "", "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
