"""Bad input of the `lake` commands is refused."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from aioqless.contrib.lake.lake import Lake
from tests.contrib.lake.conftest import RunLakeCommand
from tests.contrib.lake.lakes import EARLY, archive


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Return a lake with events and empty tables."""
    lake = Lake(tmp_path_factory.mktemp("lake") / "lake", create=True)
    archive(lake, *EARLY)
    return lake


@pytest.fixture(autouse=True)
def lake_of_commands(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands use this lake by default."""
    monkeypatch.setenv("AIOQLESS_LAKE", lake.url)


def read_files(lake: Lake) -> dict[str, bytes]:
    folder = Path(lake.url)
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("command", "reason", "code"),
    [
        ("prune --of ql", "--of and --layer are for --older-than", 1),
        ("prune --vacuum-hours 23", "--vacuum-hours must be >= 24 (got 23) unless", 2),
        ("prune --older-than soon", "--older-than 'soon' is no day; give 2026-11-21,", 2),
        ("prune --older-than 0d", "--older-than '0d' is no day", 2),
        ("prune --older-than 2999-01-01", "--older-than 2999-01-01 is in the future", 2),
        ("prune --payloads-older-than x", "--payloads-older-than 'x' is no day", 2),
        ("prune --older-than 90d --layer silber", "there is no layer 'silber'; there are", 1),
        ("prune --older-than 90d --of shop", "the lake has no namespace 'shop'; it has", 1),
        ("erase", "give --jid, --tag, or both", 1),
        ("erase --jid ''", "jid must not be empty", 2),
        ("erase --jid a --url redis://127.0.0.1:1", "127.0.0.1:1", 3),
        ("check --of shop", "the lake has no namespace 'shop'; it has", 1),
        *(
            (f"{name} --lake none", "there is no lake at", 1)
            for name in ("check", "stats", "status")
        ),
        ("prune --older-than 90d --lake none", "there is no lake at", 1),
        ("check --lake s4://bucket/lake", "not of s4", 1),
        ("tables --lake file/lake", "there is no lake at", 1),
        ("sql", "give a query, or the name of one by --named", 1),
        ("sql ''", "give one SQL statement (got 0)", 2),
        ("sql 'SELECT 1; SELECT 2'", "give one SQL statement (got 2)", 2),
        ("sql --named none", "there are backlog, cost_by_tag, job_sets,", 1),
        ("sql 'SELECT nothing FROM jobs'", "nothing", 1),
        ("sql --named cost_by_tag --set prise=1", "no getvariable('prise')", 1),
        ("sql --named late --set seconds", "'seconds' is not of the form", 1),
        ("sql SELEC", "SELEC", 1),
        ("stats --by colour", "'colour' is nothing to group by; there are queue, klass, tag,", 2),
        ("stats --since 2026-11-22 --until 2026-11-21", "is before --since", 2),
        ("stats --by worker,tag", "by worker,tag nothing is kept", 2),
        *(
            (f"stats --since 2020-01-01 --{option} '{text}'", f"--{option} '{text}' is no day", 2)
            for text in ("", "0d", "-1d", "7h", "2026-13-01", "\N{ARABIC-INDIC DIGIT SEVEN}d")
            for option in ("since", "until")
        ),
        ("report --since 2026-01-01 --until 2026-01-02", "nothing ended from 2026", 1),
        ("report --since 2026-11-21 --queue none", "nothing ended in queue none", 1),
    ],
)
def test_bad_input_is_refused_in_one_sentence_and_changes_nothing(
    command: str, reason: str, code: int, lake: Lake, run_lake_command: RunLakeCommand
) -> None:
    before = read_files(lake)
    ended, out, err = run_lake_command(*shlex.split(command))
    (line,) = [line for line in err.splitlines() if line != "the report"]
    assert (ended, out) == (code, "")
    assert line.startswith("aioqless: ") and reason in line
    assert read_files(lake) == before


@pytest.mark.parametrize("command", ["prune", "prune --older-than 90d"])
def test_old_versions_are_kept_for_a_week_at_most(
    command: str, run_lake_command: RunLakeCommand
) -> None:
    code, _, err = run_lake_command(*command.split(), "--vacuum-hours", "169")
    assert code == 2 and "168" in err
