"""Schedules after a moment in which Redis' clock was ahead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aioqless import Client, Job, job
from aioqless.store import TickRow
from aioqless.testing import Clock, run_jobs
from tests.chaos.clocks import redis_server
from tests.conftest import Until
from tests.programs import needs
from tests.worker.conftest import Lines, Work

NOON, DAY = 1_772_452_800.0, 86_400  # 2026-03-02


@needs("faketime")
async def test_schedules_run_again_after_the_clock_was_a_day_ahead(
    work: Work, until: Until, lines: Lines, tmp_path: Path
) -> None:
    @job(klass="Cron", queue="mail", cron="* * * * * *")
    async def cron(job: Job) -> None: ...

    @job(klass="Interval", queue="mail", every=1)
    async def interval(job: Job) -> None: ...

    offset = tmp_path / "offset"
    offset.write_text("+0")

    def set_clock(text: str) -> None:
        (tmp_path / "new").write_text(text)
        (tmp_path / "new").replace(offset)

    def runs(jid: str) -> int:
        return sum(line["jid"].startswith(jid) for line in lines.of("job.completed"))

    async with (
        redis_server(tmp_path, clock_file=offset) as (_, _, port),
        Client(f"redis://127.0.0.1:{port}") as client,
        work(cron, interval, using=client, poll=0.1),
    ):
        for klass in ("Cron", "Interval"):
            await until(lambda: runs(klass) >= 1)  # noqa: B023
        began = await client.internals.store.now()
        set_clock(f"+{DAY}")

        async def is_ahead() -> bool:
            found = [await client.recurring.get(jid) for jid in ("Cron", "Interval")]
            return all(each and (each.next or 0) > began + DAY / 2 for each in found)

        await until(is_ahead)
        set_clock("+0")
        before = [runs("Cron"), runs("Interval")]
        await until(lambda: len(lines.of("recurring.rescheduled", level="warning")) >= 2, 60)
        await until(lambda: runs("Cron") > before[0] + 1 and runs("Interval") > before[1] + 1, 60)
        assert await client.check() == []


async def test_starting_worker_computes_a_cron_expression_again(
    clock_client: Client, clock: Clock, lines: Lines
) -> None:
    ran: list[str] = []

    @job(klass="Note")
    async def note(job: Job) -> None:
        ran.append(job.jid)

    clock.now = NOON + DAY
    recurring = await clock_client.queue("default").recur(note, cron="*/5 * * * *", jid="r")
    clock.now = NOON
    await run_jobs(clock_client, note)
    await recurring.refresh()
    assert recurring.next == NOON + 300
    assert [line["next"] for line in lines.of("recurring.rescheduled")] == [NOON + 300]
    clock.move(300)
    await run_jobs(clock_client, note)
    assert ran == ["r-1"]


async def test_check_finds_a_cron_expression_that_stands_still_and_repairs_it(
    clock_client: Client, clock: Clock
) -> None:
    clock.now = NOON + DAY
    recurring = await clock_client.queue("default").recur("Note", {}, cron="* * * * *", jid="r")
    clock.now = NOON
    about = {"jid": "r", "next": NOON + DAY + 60, "due": NOON + 60}
    for resolve in (False, True):
        found = await clock_client.check(resolve=resolve)
        assert [(each.problem, each.fixed, each.about) for each in found] == [
            ("recurring-late", resolve, about)
        ]
    assert await clock_client.check() == []
    await recurring.refresh()
    assert recurring.next == NOON + 60


async def test_repair_leaves_a_cron_expression_that_a_worker_has_moved_meanwhile(
    clock_client: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.now = NOON + DAY
    recurring = await clock_client.queue("default").recur("Note", {}, cron="* * * * *", jid="r")
    clock.now = NOON
    list_recurring = clock_client.internals.store.recurring

    async def list_and_tick(**options: Any) -> Any:
        if not (page := await list_recurring(**options)):
            return page
        for tick, at, following in (
            (NOON + DAY + 60, NOON + 60, NOON + 60),
            (NOON + 60, NOON + 60, NOON + 120),
        ):
            clock.now = at - (at != tick)
            row: TickRow = {"jid": "r", "tick": tick, "at": at, "next": following}
            await clock_client.internals.store.tick(batch=[row])
        return page

    monkeypatch.setattr(clock_client.internals.store, "recurring", list_and_tick)
    await clock_client.check(resolve=True)
    await recurring.refresh()
    assert recurring.next == NOON + 120
