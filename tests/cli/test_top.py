"""The screen of `aioqless top`."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Label, TextArea

from aioqless import Client
from aioqless.contrib.top import Top
from aioqless.contrib.top.dialogs import DataEditor, Question
from aioqless.contrib.top.live_table import LiveTable
from tests.cli.conftest import Aioqless
from tests.cli.terminal import PATIENCE, Terminal, terminal
from tests.conftest import Until
from tests.reported_runs import report_runs
from tests.server import OwnServer

ALTERNATE, BACK = b"\x1b[?1049h", b"\x1b[?1049l"
DOWN = "\x1b[B"
HIDDEN, SHOWN = b"\x1b[?25l", b"\x1b[?25h"


@pytest.fixture
async def screen(
    client: Client, environment: dict[str, str], tmp_path: Path
) -> AsyncIterator[Terminal]:
    """Open the screen of a namespace with jobs in two queues and a failure group."""
    await client.queue("mail").put("Greet", jid="a", data={"to": "ada"})
    await client.queue("billing").put("Charge", delay=600)
    await client.queue("mail").put("Greet", jid="b")
    (job,) = await client.queue("mail").pop(worker="ann")
    await job.fail("Traceback:\nSMTPError: no such mailbox", group="mail-SMTPError")
    async with terminal(
        "top",
        "--namespace",
        client.namespace,
        "--every",
        "0.1",
        environment=environment,
        folder=tmp_path,
    ) as screen:
        yield screen


async def test_screen_shows_queues_failures_and_redis(screen: Terminal) -> None:
    await screen.shows("mail-SMTPError", "billing", "done/s", "memory", "Quit")
    await screen.shows(
        re.compile(r"\A.*\n.*1 waiting.*1 scheduled.*1 failed"),
        re.compile(r"^ mail +1 +0 +0 +0 +0 ", re.MULTILINE),
    )


async def test_key_pauses_and_resumes_a_queue(screen: Terminal, client: Client) -> None:
    await screen.shows("billing")
    screen.press(DOWN)  # from billing to mail
    screen.press("p")
    await screen.shows("mail is paused", "mail paused")
    assert (await client.queue("mail").counts()).paused
    screen.press("p")
    await screen.shows("mail is resumed")
    assert not (await client.queue("mail").counts()).paused


async def test_failure_group_is_retried_after_confirmation(
    screen: Terminal, client: Client
) -> None:
    await screen.shows("mail-SMTPError")
    screen.press("\tr")
    await screen.shows("Retry 1 job of mail-SMTPError?")
    screen.press("n")
    await screen.shows(without="Retry 1 job of mail-SMTPError?")
    assert await client.jobs.failed_counts() == {"mail-SMTPError": 1}
    screen.press("r")
    await screen.shows("Retry 1 job of mail-SMTPError?")
    screen.press("y")
    await screen.shows("1 job of mail-SMTPError retried")
    assert await client.jobs.failed_counts() == {}


async def test_failed_job_is_edited_and_retried(client: Client) -> None:
    await client.queue("mail").put("Greet", jid="a", data={"to": "ada"})
    (job,) = await client.queue("mail").pop()
    await job.fail("no such mailbox", group="mail-SMTPError")
    async with Top(client, 0.1).run_test() as pilot:
        await shown(pilot, "failures", "mail-SMTPError")
        await pilot.press("tab", "enter")
        await shown(pilot, "jobs", "a")
        await pilot.press("e")
        while not isinstance(pilot.app.screen, DataEditor):
            await pilot.pause()
        await pilot.press("x", "ctrl+s")
        error = pilot.app.screen.query_one("#error", Label)
        assert "the data is not JSON" in str(error.content)
        editor = pilot.app.screen.query_one(TextArea)
        editor.text = editor.text.replace("x", "").replace("ada", "eve")
        await pilot.press("ctrl+s")
        await shown(pilot, "jobs")
    edited = await client.jobs.get("a")
    assert edited and (edited.state, edited.data) == ("waiting", {"to": "eve"})


async def test_waiting_job_is_canceled_after_confirmation_and_not_retried(
    client: Client,
) -> None:
    await client.queue("mail").put("Greet", jid="b")
    async with Top(client, 0.1).run_test() as pilot:
        await shown(pilot, "queues", "mail")
        await pilot.press("enter")
        await shown(pilot, "jobs", "b")
        await pilot.press("r")
        await pilot.press("c")
        while not isinstance(pilot.app.screen, Question):
            await pilot.pause()
        await pilot.press("y")
        await shown(pilot, "jobs")
    assert await client.jobs.get("b") is None


@pytest.mark.long
async def test_filter_leaves_the_rows_that_contain_a_text(client: Client) -> None:
    for name in ("billing", "mail", "mail-slow"):
        await client.queue(name).put("Greet")
    async with Top(client, 0.1).run_test() as pilot:
        await shown(pilot, "queues", "billing", "mail", "mail-slow")
        await pilot.press("slash", *"mail")
        await shown(pilot, "queues", "mail", "mail-slow")
        await pilot.press("enter", "down", "enter")
        await shown(pilot, "jobs", (await client.queue("mail-slow").jids("waiting"))[0])
        await pilot.press("escape", "escape")
        await shown(pilot, "queues", "billing", "mail", "mail-slow")


async def test_row_is_opened_by_the_mouse(client: Client) -> None:
    await client.queue("billing").put("Charge", jid="c")
    async with Top(client, 0.1).run_test() as pilot:
        await shown(pilot, "queues", "billing")
        await pilot.pause()
        await pilot.click("#queues", offset=(4, 1))
        await shown(pilot, "jobs", "c")


async def test_cursor_stays_on_its_row_when_others_come(client: Client) -> None:
    await client.queue("mail").put("Greet")
    async with Top(client, 0.1).run_test() as pilot:
        await shown(pilot, "queues", "mail")
        await client.queue("billing").put("Charge")
        await shown(pilot, "queues", "billing", "mail")
        assert pilot.app.screen.query_one("#queues", LiveTable).selected == "mail"


async def shown(pilot: Pilot[None], table: str, *names: str) -> None:
    """Wait until a table has exactly these rows."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = [each for each in pilot.app.screen.query(LiveTable) if each.id == table]
            if found and [str(row.value) for row in found[0].rows] == list(names):
                return
            await pilot.pause(0.02)


@pytest.mark.long
async def test_worker_is_shown_with_the_time_of_its_last_heartbeat(
    screen: Terminal, client: Client
) -> None:
    await client.redis.zadd(
        f"{client.namespace}:workers", {"ann": (await client.internals.store.now()) - 3600}
    )
    await report_runs(client, await client.internals.store.now(), worker="bob")
    who_is_silent_comes_last = re.compile(r" bob .* ann ", re.DOTALL)
    await screen.shows("stalled  worker", who_is_silent_comes_last, "last seen", "1 h ago")


async def test_rates_are_shown_while_jobs_complete(
    screen: Terminal, client: Client, until: Until
) -> None:
    await screen.shows("billing")
    rate = re.compile(r"^ mail +(\S+ +){5}[0,.]*[1-9]", re.MULTILINE)

    async def work() -> bool:
        await client.queue("mail").put("Greet")
        (job,) = await client.queue("mail").pop()
        await job.complete()
        screen.read_output()
        return rate.search(screen.text) is not None

    await until(work)


@pytest.mark.long
async def test_screen_fits_a_small_terminal(screen: Terminal) -> None:
    await screen.shows("scheduled")
    screen.resize(60, 16)
    text = await screen.shows("mail-SMTPError", "queue", "worker", "billing")
    assert max(map(len, text.splitlines())) <= 60


@pytest.mark.long
@pytest.mark.parametrize("way", ["q", "\x03", signal.SIGINT, signal.SIGTERM])
async def test_terminal_is_restored(screen: Terminal, way: str | signal.Signals) -> None:
    before = screen.modes()
    await screen.shows("billing")
    assert screen.modes()[3] != before[3]
    if isinstance(way, str):
        screen.press(way)
    else:
        screen.signal(way)
    assert await screen.ended() == 0
    assert screen.raw.rindex(BACK) > screen.raw.rindex(ALTERNATE) and screen.raw.rindex(
        SHOWN
    ) > screen.raw.rindex(HIDDEN)


async def test_outage_is_shown_and_the_screen_recovers(
    own_server: OwnServer, environment: dict[str, str], tmp_path: Path
) -> None:
    async with Client(own_server.url) as client:
        await client.queue("mail").put("Greet")
    async with terminal(
        "top", "--url", own_server.url, "--every", "0.1", environment=environment, folder=tmp_path
    ) as screen:
        await screen.shows("1 waiting")
        own_server.kill()
        await screen.shows("Redis is unavailable", "mail")
        own_server.start()
        await screen.shows("mail", without="Redis is unavailable")
        screen.press("q")
        assert await screen.ended() == 0


async def test_top_is_refused_without_a_terminal(cli: Aioqless) -> None:
    ended = await cli("top")
    assert ended.code == 1 and "this takes a terminal" in ended.err and "queues --json" in ended.err
