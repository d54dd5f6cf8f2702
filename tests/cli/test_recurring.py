"""Recurring jobs: `aioqless recur`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aioqless import Client, Limit, NewJob
from tests.cli.conftest import Aioqless


async def test_recurring_jobs_are_listed_with_their_next_time(
    client: Client, cli: Aioqless
) -> None:
    queue = client.queue("mail")
    await queue.recur("Digest", every=90, offset=600, jid="digest")
    await queue.recur("Report", cron="0 9 * * mon-fri", timezone="Asia/Tokyo", jid="report")
    paused = await queue.recur("Sweep", every=60, jid="sweep")
    await paused.pause()
    ended = await cli("recur")
    assert (ended.code, ended.err) == (0, "")
    _, report, sweep, digest = ended.out.splitlines()
    assert (
        report[11:].split()[:3] == ["00:00:00", "report", "mail"]
        and "0 9 * * mon-fri Asia/Tokyo" in report
    )
    assert sweep.split() == ["paused", "sweep", "mail", "every", "1", "min", "Sweep", "-"]
    assert digest.split()[2:] == ["digest", "mail", "every", "1", "min", "30", "s", "Digest", "-"]


async def test_limits_and_jitter_are_put_and_listed(client: Client, cli: Aioqless) -> None:
    put = ("recur", "put", "mail", "Digest", "--cron", "@daily", "--jid", "digest")
    limits = ("--jitter", "90", "--until", "2099-01-31T12:00+01:00", "--max-runs", "3")
    assert (await cli(*put, *limits)).out == "digest\n"
    listed = (await cli("recur")).out
    assert "0 0 * * * UTC, up to 1 min 30 s later, 3 of 3 left, until 2099-01-31 11:00:00" in listed
    recurring = await client.recurring.get("digest")
    assert recurring and (recurring.max_runs, recurring.jitter) == (3, 90)
    await recurring.update(until=1)
    assert (await cli("recur")).out.splitlines()[-1].startswith("ended ")
    refused = await cli(*put, "--until", "tomorrow")
    assert refused.code == 2 and "'tomorrow' must be a time" in refused.err


async def test_another_schedule_leaves_data_and_time_zone(client: Client, cli: Aioqless) -> None:
    data = {"to": ["ada"]}
    await client.queue("mail").recur(
        "Digest", data, cron="0 3 * * *", timezone="Asia/Tokyo", jid="digest"
    )
    put = ("recur", "put", "mail", "Digest", "--jid", "digest")
    assert (await cli(*put, "--cron", "30 4 * * *")).code == 0
    changed = await client.recurring.get("digest")
    assert changed and (changed.cron, changed.timezone) == ("30 4 * * *", "Asia/Tokyo")
    assert changed.data == data
    assert (await cli(*put, "null", "--cron", "@daily", "--timezone", "UTC")).code == 0
    changed = await client.recurring.get("digest")
    assert changed and changed.data is None and changed.timezone == "UTC"


async def test_another_schedule_leaves_what_the_call_does_not_name(
    client: Client, cli: Aioqless
) -> None:
    smtp = Limit("smtp", max_concurrency=2)
    made = await client.queue("mail").recur(
        NewJob("Digest", {"to": 1}, tags=["nightly"], priority=-3, limits=[smtp]),
        every=60,
        jid="digest",
        max_runs=9,
    )
    put = ("recur", "put", "post", "Digest", "--jid", "digest")
    assert (await cli(*put, "--every", "90")).out == "digest\n"
    await made.refresh()
    assert (made.interval, made.queue, made.data) == (90, "post", {"to": 1})
    assert (made.tags, made.priority, made.max_runs) == (["nightly"], -3, 9)
    instance = await client.jobs.get(await made.run_now())
    assert instance and "smtp" in str(instance.constraints)
    refused = await cli(*put, "--every", "90", "--timezone", "Asia/Tokyo")
    assert refused.code == 2
    assert (await cli(*put, "--cron", "@daily")).code == 0
    changed = await client.recurring.get("digest")
    assert changed and (changed.cron, changed.data) == ("0 0 * * *", {"to": 1})


async def test_list_is_refused_with_what_lists(cli: Aioqless) -> None:
    ended = await cli("recur", "list")
    assert ended.code == 2 and "`aioqless recur` alone lists them" in ended.err


async def test_recurring_job_is_paused_resumed_run_and_canceled(
    client: Client, cli: Aioqless
) -> None:
    recurring = await client.queue("mail").recur("Digest", cron="0 9 * * *", jid="digest")
    assert (await cli("recur", "pause", "digest")).code == 0
    assert (await recurring.refresh()).paused
    assert (await cli("recur", "run", "digest")).out == "digest-1\n"
    assert (await cli("recur", "resume", "digest")).code == 0
    assert not (await recurring.refresh()).paused
    assert (await cli("recur", "cancel", "digest", "--yes")).code == 0
    assert await client.recurring.get("digest") is None


@pytest.mark.parametrize("command", ["pause", "resume", "run", "cancel"])
async def test_unknown_recurring_job_is_refused(cli: Aioqless, command: str) -> None:
    ended = await cli("recur", command, "nobody")
    assert (ended.code, ended.err) == (1, "aioqless: there is no recurring job 'nobody'\n")


async def test_schedule_that_is_never_due_is_refused_at_start(
    folder: Path, aioqless: Aioqless
) -> None:
    (folder / "never.py").write_text(
        "import aioqless\n@aioqless.job(cron='0 0 31 2 *')\nasync def never(job): ...\n"
    )
    ended = await aioqless("worker", "never")
    assert ended.code == 1
    assert re.fullmatch(
        r"aioqless: cron '0 0 31 2 \*' never comes: there is no such day\n", ended.err
    )
