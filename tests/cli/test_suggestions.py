"""Suggestions for misspelled names."""

from __future__ import annotations

import asyncio
import json

from aioqless import Client
from aioqless.cli.help import list_commands
from aioqless.client.config import OPTION_DESCRIPTIONS
from aioqless.hints import COMMANDS
from tests.cli.conftest import Aioqless
from tests.conftest import Until


async def test_misspelled_queue_is_distinguished_from_an_empty_one(
    client: Client, cli: Aioqless
) -> None:
    await client.queue("mail").put("Greet", jid="a")
    for command, name in (("stats", "mial"), ("jobs", "queue:mial")):
        ended = await cli(command, name)
        assert (ended.code, ended.err) == (
            1,
            "aioqless: no job was ever put into mial; did you mean mail?\n",
        )
        ended = await cli(command, name, "--json")
        assert (
            ended.code == 1
            and json.loads(ended.out) is not None
            and "did you mean mail?" in ended.err
        )
    for command in ("pause", "resume"):
        ended = await cli(command, "mail", "mial")
        assert (ended.code, ended.out, ended.err) == (
            1,
            "",
            "aioqless: no job was ever put into mial; did you mean mail?\n",
        )
    assert not (await client.queue("mail").counts()).paused, "none is paused, or all"
    await client.queue("new").pause()
    assert (await cli("resume", "new")).out == "new resumed\n"
    await client.jobs.cancel("a")
    assert (
        "No such jobs" in (await cli("jobs", "queue:mail")).out
        and "never" not in (await cli("stats", "mail")).out
    )


async def test_misspelled_worker_is_distinguished_from_an_idle_one(
    client: Client, cli: Aioqless
) -> None:
    await client.queue("mail").pop(worker="anna")
    assert (await cli("workers", "anna")).out == "anna has no running jobs.\n"
    for option in ([], ["--json"]):
        ended = await cli("workers", "ana", *option)
        assert (ended.code, ended.err) == (
            1,
            "aioqless: there is no worker ana; did you mean anna?\n",
        )
    assert (
        await cli("pause", "--worker", "ana")
    ).err == "aioqless: no running worker is named ana; did you mean anna?\n"


async def test_tail_of_an_unknown_queue_says_so_and_waits(
    client: Client, cli: Aioqless, until: Until
) -> None:
    await client.queue("mail").put("Greet")
    following = asyncio.ensure_future(cli("tail", "-q", "mial", "--count", "1"))

    async def put() -> bool:
        await client.queue("mial").put("Greet")
        return following.done()

    await until(lambda: client.redis.pubsub_channels(f"{client.namespace}:*"))
    await until(put)
    ended = await following
    assert ended.code == 0 and "put" in ended.out
    assert ended.err == "aioqless: no job was ever put into mial; did you mean mail?\n"


async def test_queue_in_the_place_of_a_failure_group_is_named(
    client: Client, cli: Aioqless
) -> None:
    await client.queue("mail").put("Greet")
    refused = await cli("retry", "--group", "mail")
    assert refused.err == "aioqless: there are no failed jobs in mail: mail is a queue\n"


async def test_misspelled_failure_group_gets_a_suggestion(client: Client, cli: Aioqless) -> None:
    await client.queue("mail").put("Greet")
    (job,) = await client.queue("mail").pop()
    await job.fail("no such word", group="typo")
    for command in (
        ["failed", "tpyo"],
        ["failed", "tpyo", "--json"],
        ["jobs", "group:tpyo"],
        ["jobs", "group:tpyo", "--json"],
        ["retry", "--group", "tpyo"],
        ["retry", "--group", "tpyo", "--dry-run"],
    ):
        ended = await cli(*command)
        assert (ended.code, ended.err) == (
            1,
            "aioqless: there are no failed jobs in tpyo; did you mean typo?\n",
        )
        assert bool(ended.out) == ("--json" in command)


async def test_unknown_config_option_is_refused_with_a_suggestion(
    client: Client, cli: Aioqless
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
            ended = await cli("config", option, *command)
            assert ended.code == 1 and ended.err.startswith(refused + more)
    assert (await cli("config", "colour", "red")).err.startswith(
        "aioqless: no command reads the option 'colour'. --force"
    )
    assert await client.redis.hgetall(f"{client.namespace}:config") == {}


async def test_custom_config_option_needs_force(cli: Aioqless) -> None:
    assert (await cli("config", "colour", "red", "--force")).out == "colour: not set → red\n"
    assert (await cli("config", "colour")).out == "red\n"
    assert (await cli("config", "colour", "blue")).code == 1
    assert (await cli("config", "colour", "--unset")).out == "colour: red → not set\n"


async def test_every_config_option_with_a_default_is_explained(client: Client) -> None:
    assert set(await client.config.all()) <= set(OPTION_DESCRIPTIONS)


async def test_command_of_another_queue_names_ours(cli: Aioqless) -> None:
    ended = await cli("flower", "--port", "5555")
    assert (ended.code, ended.err) == (
        2,
        "aioqless: 'flower' is no command: write aioqless web\n",
    )


def test_hints_name_no_command_that_there_is() -> None:
    ours = {name for commands in list_commands().values() for name in commands}
    assert not ours & COMMANDS.keys()
    assert {hint.split()[1].strip(",") for hint in COMMANDS.values()} <= ours
