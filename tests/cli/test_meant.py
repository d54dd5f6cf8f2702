"""What the command line says of names that there aren't."""

from __future__ import annotations

from aioqless import Client

from .conftest import Aioqless


async def test_a_queue_that_is_misspelled_is_told_from_one_that_is_empty(client: Client, here: Aioqless) -> None:
    await client.queue("mail").put("Greet", jid="a")
    for command in ("stats", "jobs"):
        assert (await here(command, "mial")).out == "no job was ever put in mial; is it mail that you mean?\n"
    assert (await here("pause", "nowhere")).out == "nowhere paused; no job was ever put in nowhere\n"
    await client.jobs.cancel("a")
    assert "No such jobs" in (await here("jobs", "mail")).out and "never" not in (await here("stats", "mail")).out


async def test_a_worker_that_is_misspelled_is_told_from_one_that_is_idle(client: Client, here: Aioqless) -> None:
    await client.queue("mail").pop(worker="anna")
    assert (await here("workers", "anna")).out == "anna holds no job.\n"
    assert (await here("workers", "ana")).out == "no worker named ana was seen; is it anna that you mean?\n"
    assert (await here("quiet", "ana")).err == "aioqless: no worker ana listens; is it anna that you mean?\n"


async def test_an_option_that_is_misspelled_is_stored_as_somebodys_own_and_the_one_that_may_be_meant_is_named(here: Aioqless) -> None:
    assert (await here("config", "hartbeat")).out == "not set; is it heartbeat that you mean?\n"
    assert (await here("config", "hartbeat", "30")).out == "hartbeat: not set → 30; is it heartbeat that you mean?\n"
    assert (await here("config", "hartbeat", "--unset")).out == "hartbeat: 30 → not set\n"
    assert (await here("config", "colour", "red")).out == "colour: not set → red\n"
