"""`aioqless lake prune`, `erase` and `check` as operators run them."""

from __future__ import annotations

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
