"""Optional programs are looked up in one module, which a PATH without them hides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import programs
from tests.pages import ROOT


def test_only_the_module_of_programs_looks_for_them() -> None:
    names = "|".join(map(re.escape, programs.PROGRAMS))
    lookup = re.compile(rf"""which\(["']({names})|["']/usr/s?bin/({names})|CHROMIUM""")
    files = [file for file in (ROOT / "tests").rglob("*.py") if file.name != Path(__file__).name]
    assert [file.name for file in files if lookup.search(file.read_text("utf-8"))] == []


@pytest.mark.parametrize("program", programs.PROGRAMS)
def test_no_program_is_found_by_a_path_without_it(
    program: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    programs.hide(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert programs.find(program) is None


def test_programs_beside_the_folders_of_path_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = tmp_path / "lib/postgresql/15/bin/initdb"
    server.parent.mkdir(parents=True)
    server.touch()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert programs.find("postgresql") == str(server)
