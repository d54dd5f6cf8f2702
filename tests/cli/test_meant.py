"""What the command line says of names that there aren't."""

from __future__ import annotations

import json

import pytest

from aioqless import Client
from aioqless.client.config import ABOUT
from tests.cli.conftest import Aioqless


async def test_a_queue_that_is_misspelled_is_told_from_one_that_is_empty(
    client: Client, here: Aioqless
) -> None:
    await client.queue("mail").put("Greet", jid="a")
    for command in ("stats", "jobs"):
        ended = await here(command, "mial")
        assert (ended.code, ended.err) == (
            1,
            "aioqless: no job was ever put in mial; is it mail that you mean?\n",
        )
        ended = await here(command, "mial", "--json")
        assert (
            ended.code == 1
            and json.loads(ended.out) is not None
            and "is it mail that you mean?" in ended.err
        )
    paused = await here("pause", "nowhere")
    assert (paused.code, paused.out) == (0, "nowhere paused; no job was ever put in nowhere\n"), (
        "it may be paused before its first job"
    )
    await client.jobs.cancel("a")
    assert (
        "No such jobs" in (await here("jobs", "mail")).out
        and "never" not in (await here("stats", "mail")).out
    )


async def test_a_worker_that_is_misspelled_is_told_from_one_that_is_idle(
    client: Client, here: Aioqless
) -> None:
    await client.queue("mail").pop(worker="anna")
    assert (await here("workers", "anna")).out == "anna holds no job.\n"
    for option in ([], ["--json"]):
        ended = await here("workers", "ana", *option)
        assert (ended.code, ended.err) == (
            1,
            "aioqless: no worker named ana was seen; is it anna that you mean?\n",
        )
    assert (
        await here("quiet", "ana")
    ).err == "aioqless: no worker ana listens; is it anna that you mean?\n"


async def test_a_failure_group_that_is_misspelled_is_told_with_the_one_that_may_be_meant(
    client: Client, here: Aioqless
) -> None:
    await client.queue("mail").put("Greet")
    (job,) = await client.queue("mail").pop()
    await job.fail("typo", "no such word")
    for command in (
        ["failed", "tpyo"],
        ["failed", "tpyo", "--json"],
        ["jobs", "--group", "tpyo"],
        ["jobs", "--group", "tpyo", "--json"],
    ):
        ended = await here(*command)
        assert (ended.code, ended.err) == (
            1,
            "aioqless: nothing has failed in tpyo; is it typo that you mean?\n",
        )
        assert bool(ended.out) == ("--json" in command)


async def test_an_option_that_no_command_reads_is_refused_and_the_one_that_may_be_meant_is_named(
    client: Client, here: Aioqless
) -> None:
    for option, value, like in (
        ("hartbeat", "30", "heartbeat"),
        ("mail-max-concurency", "abc", "mail-max-concurrency"),
        ("new-mail-max-lenght", "3", "new-mail-max-length"),
        ("hartbeat-mail", "3", "heartbeat-mail"),
        ("job-history", "3", "jobs-history"),
    ):
        refused = f"aioqless: no command reads the option '{option}'; did you mean '{like}'?"
        for command, more in (
            ([value], " --force stores it nevertheless"),
            ([], ""),
            (["--unset"], ""),
            ([value, "--dry-run"], " --force"),
        ):
            ended = await here("config", option, *command)
            assert ended.code == 1 and ended.err.startswith(refused + more)
    assert (await here("config", "colour", "red")).err.startswith(
        "aioqless: no command reads the option 'colour'. --force"
    )
    assert await client.redis.hgetall(f"{client.namespace}:config") == {}


async def test_an_option_of_ones_own_is_stored_with_force_shown_and_unset(here: Aioqless) -> None:
    assert (await here("config", "colour", "red", "--force")).out == "colour: not set → red\n"
    assert (await here("config", "colour")).out == "red\n"
    assert (await here("config", "colour", "blue")).code == 1
    assert (await here("config", "colour", "--unset")).out == "colour: red → not set\n"


@pytest.mark.parametrize(
    "option",
    [
        "mail-heartbeat",
        "heartbeat-mail",
        "mail-max-length",
        "mail-rate-limit",
        "app.greet-failed-history",
    ],
)
async def test_an_option_that_is_known_and_not_set_is_told_from_one_that_is_unknown(
    here: Aioqless, option: str
) -> None:
    assert (await here("config", option)).out == "not set\n"
    assert (await here("config", option, "often")).code == 1, "its value is checked"


async def test_every_option_that_has_a_default_is_explained(client: Client) -> None:
    assert set(await client.config.all()) <= set(ABOUT)
