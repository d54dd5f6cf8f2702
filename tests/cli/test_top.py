"""The screen of `aioqless top`."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aioqless import Client
from tests.cli.conftest import Aioqless
from tests.cli.terminal import Terminal, terminal
from tests.conftest import Until
from tests.server import OwnServer

ALTERNATE, BACK = b"\x1b[?1049h", b"\x1b[?1049l"
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
    await job.fail("mail-SMTPError", "Traceback:\nSMTPError: no such mailbox")
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
    text = await screen.shows("mail-SMTPError", "billing", "done/s", "memory", "q quit")
    lines = text.splitlines()
    assert "1 waiting" in lines[1] and "1 scheduled" in lines[1] and "1 failed" in lines[1]
    (mail,) = [line for line in lines if line.startswith("mail ")]
    assert mail.split()[1:6] == ["1", "0", "0", "0", "0"]


async def test_key_pauses_and_resumes_a_queue(
    screen: Terminal, client: Client, until: Until
) -> None:
    async def paused() -> bool:
        return bool((await client.queue("mail").counts()).paused)

    await screen.shows("billing")
    screen.press("\x1b[B")  # down, from billing to mail
    screen.press("p")
    await screen.shows("mail is paused", "mail paused")
    assert await paused()
    screen.press("p")
    await screen.shows("mail is resumed")
    assert not await paused()


async def test_failure_group_is_explained_and_retried_after_confirmation(
    screen: Terminal, client: Client
) -> None:
    await screen.shows("mail-SMTPError")
    screen.press("\t\r")
    await screen.shows("SMTPError: no such mailbox", "data {", "aioqless edit a", "esc back")
    screen.press("\x1b")
    await screen.shows("billing", "enter details")
    screen.press("\rr")
    await screen.shows("Retry 1 job in mail-SMTPError? y/n")
    screen.press("n")
    await screen.shows("nothing was done")
    assert await client.jobs.failed() == {"mail-SMTPError": 1}
    screen.press("ry")
    await screen.shows("1 job of mail-SMTPError retried", "nothing has failed")
    assert await client.jobs.failed() == {}


async def test_worker_is_shown_with_the_time_of_its_last_heartbeat(
    screen: Terminal, client: Client
) -> None:
    await client.redis.zadd(
        f"{client.namespace}:workers", {"ann": (await client.store.now()) - 3600}
    )
    await client.queue("billing").pop(worker="bob")
    text = await screen.shows(
        "jobs   stalled worker", "0         0 ann", "0         0 bob", "heard of", "1 h ago"
    )
    assert text.index(" bob ") < text.index(" ann "), "who is silent comes last"


async def test_rates_are_shown_while_jobs_complete(
    screen: Terminal, client: Client, until: Until
) -> None:
    await screen.shows("billing")

    async def work() -> bool:
        await client.queue("mail").put("Greet")
        (job,) = await client.queue("mail").pop()
        await job.complete()
        screen.read_output()
        return any(
            line.startswith("mail ") and float(line.split()[6].replace(",", "")) > 0
            for line in screen.text.splitlines()
        )

    await until(work, 15)


async def test_screen_fits_any_terminal_size(screen: Terminal) -> None:
    await screen.shows("scheduled")
    screen.resize(60, 14)
    text = await screen.shows("mail-SMTPError", "queue")
    assert max(map(len, text.splitlines())) <= 60 and "billing" in text
    screen.resize(150, 30)
    await screen.shows("lately")


@pytest.mark.parametrize("way", ["q", "\x1b", signal.SIGINT, signal.SIGTERM])
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
        await screen.shows("Redis is away", "mail")
        own_server.start()
        while "Redis is away" in await screen.shows("mail"):
            pass
        screen.press("q")
        assert await screen.ended() == 0


async def test_top_is_refused_without_a_terminal(cli: Aioqless) -> None:
    ended = await cli("top")
    assert ended.code == 1 and "this takes a terminal" in ended.err and "queues --json" in ended.err
