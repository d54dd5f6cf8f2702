"""`aioqless lake prune`, `erase` and `check` as operators run them."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path

import pytest

from aioqless import Client
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE, TABLES
from aioqless.store import Keys
from tests.contrib.lake.conftest import RunLakeCommand
from tests.contrib.lake.lakes import TODAY, TOMORROW, ask, raw, texts

MARKER = "alice-7f3a"


@pytest.fixture
def lake(filled: Lake, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A filled lake, which commands use by default."""
    monkeypatch.setenv("AIOQLESS_LAKE", filled.url)
    return filled


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


def test_prune_deletes_days_of_the_named_layers_and_check_finds_what_others_delete(
    lake: Lake, run_lake_command: RunLakeCommand
) -> None:
    layers = ("--layer", "bronze", "--layer", "silver")
    code, out, err = run_lake_command(
        "prune", "--older-than", TOMORROW, *layers, "--vacuum-hours", 0
    )
    assert code == 0, err
    assert "rows of days before 2026-11-22 deleted" in out
    for name in TABLES:
        if name.startswith(("bronze", "silver")):
            assert {row.date for row in raw(lake, name)} <= {TOMORROW}, name
            assert not list(Path(lake.url, name).glob("*/date=2026-11-21/*.parquet"))
    assert run_lake_command("tables", "--rebuild")[0] == 0, "gold of these days stays"
    found = [row for row in raw(lake, "gold/klasses") if row.date == TODAY]
    assert {(row.namespace, row.klass, row.runs) for row in found} == {
        *(("ql", "Greet", 1), ("ql", "Send", 1)),
        *(("{billing}", "Greet", 1), ("cancelled", "Greet", 0)),
    }
    assert run_lake_command("check")[:2] == (0, "the tables agree\n")
    runs = lake.table("silver/runs")
    runs.delete({runs.files("ql")[0].partition})
    code, out, _ = run_lake_command("check", "--of", "ql")
    assert code == 1 and "runs of ql: date 2026-11-22, expected 4, found None" in out


async def read_stream(client: Client) -> list[object]:
    return list(await client.redis.xrange(Keys(client.namespace)("archive")) or ())


async def end_job(client: Client) -> None:
    """Add the end of the job `MARKER` to the stream, and an entry of it that is damaged."""
    await client.config.set("archive", "on")
    await client.config.set("archive-data", 1_000)
    await client.queue("mail").put("Greet", {"to": MARKER}, jid=MARKER)
    for job in await client.queue("mail").pop():
        await job.complete()
    await client.redis.xadd(Keys(client.namespace)("archive"), {"v": "7", "jid": MARKER})


def test_erase_removes_a_job_from_the_stream_and_every_file(
    redis_url: str, namespace: str, tmp_path: Path, run_lake_command: RunLakeCommand
) -> None:
    lake = Lake(tmp_path / "lake", create=True)
    source = ("--url", redis_url, "--namespace", namespace, "--lake", lake.url)
    call = partial(ask, url=redis_url, namespace=namespace)
    call(end_job)
    assert run_lake_command("archive", *source)[0] == 0
    assert all(MARKER in repr(raw(lake, name)) for name in (EVENTS, QUARANTINE))
    call(end_job)
    assert MARKER in repr(call(read_stream)), "entries of the job are in the stream again"

    code, out, err = run_lake_command("erase", "--jid", MARKER, *source)
    assert code == 0, err
    assert "days of tables written again without 1 jobs" in out
    assert not any(MARKER in text for text in texts(lake)) and call(read_stream) == []
    assert [row.runs for row in raw(lake, "gold/klasses")] == [2], "sums stay"
    again = run_lake_command("erase", "--jid", MARKER, *source)
    assert again[:2] == (0, "no table has these jobs\n")
