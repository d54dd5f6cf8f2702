"""The tests on docs/testing.md pass in another project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.pages import ROOT, blocks


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
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:valkey", "-p", "no:cacheprovider"]
    ended = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    assert "8 passed" in ended.stdout
