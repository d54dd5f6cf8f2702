"""Warnings about an unread archive, before the stream fills Redis."""

from __future__ import annotations

import sys

import pytest

from aioqless import Client
from aioqless.client.archive import ArchiveState
from aioqless.client.overview import OverviewReader
from aioqless.contrib.dashboard.pages.overview import find_alarms
from aioqless.worker.parts.memory_checks import ArchiveMonitor

HOUR = 3600.0


def state(**more: object) -> ArchiveState:
    usual = {
        "on": True,
        "when_full": "hold",
        "bound": 1000,
        "length": 3,
        "added": 5,
        "first": "10000-0",
        "last": "30000-0",
    }
    return ArchiveState(**{**usual, **more})  # type: ignore[arg-type]


def test_age_of_the_oldest_unread_entry_is_reported() -> None:
    assert state().unread_since(110) == 100
    assert state(length=0, first=None).unread_since(110) == 0
    assert state(reader="lake", read="9000-0", at=50.0).unread_since(110) == 100
    assert (
        state(reader="lake", read="20000-0", at=50.0).unread_since(110) == 60
    )  # it may have been added right after that
    assert state(reader="lake", read="30000-0", at=50.0).unread_since(110) == 0


def test_old_and_soon_trimmed_entries_are_a_problem() -> None:
    assert (
        state().describe_problem(10 + HOUR) is None
        and state(length=950).describe_problem(10 + HOUR) is None
    )
    assert state(length=0, first=None).describe_problem(10 * HOUR) is None
    held, cut = (
        state().describe_problem(10 + 2 * HOUR),
        state(length=950, when_full="count").describe_problem(20),
    )
    assert (
        held
        and "ended jobs have waited for 2.0 h to be archived (3 in Redis)" in held
        and "grows until Redis is full" in held
    )
    assert cut and "(950 in Redis)" in cut and "entries beyond 1,000 are deleted unread" in cut
    assert (
        state(
            length=950, when_full="count", reader="lake", read="30000-0", at=50.0
        ).describe_problem(60)
        is None
    )


async def test_worker_check_and_dashboard_warn(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    worker, key = ArchiveMonitor(), f"{client.namespace}:x:archive"
    await worker.check(client.internals.store)
    assert "unread" not in caplog.text
    await client.redis.xadd(key, {"v": "1"}, id="1000-0")  # long ago
    await worker.check(client.internals.store)
    assert "archive.unread" in caplog.text
    sample = await OverviewReader(client).read()
    assert any(each.problem.startswith("Ended jobs have waited") for each in find_alarms(sample))


def test_command_warns_with_its_exit_code(
    redis_url: str,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from redis import Redis

    from aioqless.cli.main import main

    def told() -> tuple[int, str]:
        monkeypatch.setattr(
            sys,
            "argv",
            [
                "aioqless",
                "lake",
                "archive",
                "--status",
                "--url",
                redis_url,
                "--namespace",
                namespace,
            ],
        )
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), capsys.readouterr().out

    assert told() == (0, "off; 0 of 0 entries are in Redis; never read\n")
    with Redis.from_url(redis_url) as redis:
        redis.hset(f"{namespace}:config", "archive", "on")
        redis.xadd(f"{namespace}:x:archive", {"v": "1"}, id="1000-0")  # long ago
        code, out = told()
        assert (
            code == 1
            and "on; 1 of 1 entries" in out
            and "without `aioqless lake archive`, the stream grows until Redis is full" in out
        )
        redis.hset(
            f"{namespace}:x:archive:read", mapping={"reader": "lake", "id": "1000-0", "at": "2000"}
        )
        code, out = told()
        assert code == 0 and "by lake" in out
