"""Optional programs are found, and a PATH without them hides them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import programs


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
