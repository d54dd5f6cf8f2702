"""Job sets on the command line: sets, retry --set, cancel --set."""

from __future__ import annotations

import json

from aioqless import Client, NewJob
from tests.cli.conftest import Aioqless


async def put_set(client: Client) -> None:
    """Put a set of which one member has failed, and close it."""
    mails = client.job_set("mails")
    await mails.put_many(NewJob("Greet", {}) for _ in range(3))
    await mails.close()
    (job,) = await client.queue("default").pop()
    await job.fail("no such word", group="typo")


async def test_sets_are_listed_and_shown(client: Client, cli: Aioqless) -> None:
    assert "No job sets" in (await cli("sets")).out
    await put_set(client)
    (listed,) = json.loads((await cli("sets", "--json")).out)
    assert (listed["name"], listed["added"], listed["open"], listed["failed"]) == ("mails", 3, 2, 1)
    assert "mails" in (await cli("sets")).out
    shown = (await cli("sets", "mails")).out
    assert "mails: 33% of 3, closed" in shown and "typo" in shown
    assert json.loads((await cli("sets", "mails", "--json")).out)["groups"] == {"typo": 1}
    assert (await cli("sets", "--follow")).code == 2
    assert "there is no such job set" in (await cli("sets", "other")).err


async def test_failed_members_are_retried(client: Client, cli: Aioqless) -> None:
    await put_set(client)
    dry = await cli("retry", "--set", "mails", "--dry-run")
    assert dry.out == "1 job of the set mails would be retried\n"
    assert (await cli("retry", "--set", "mails")).out == "1 job retried\n"
    assert (await client.job_set("mails").status()).open == 3
    assert (await cli("retry", "--set", "mails", "--all")).code == 2


async def test_set_is_canceled_and_followed_to_its_end(client: Client, cli: Aioqless) -> None:
    await put_set(client)
    dry = await cli("cancel", "--set", "mails", "--dry-run")
    assert dry.out == "2 jobs of the set mails would be deleted\n"
    assert (await cli("cancel", "--set", "mails", "--yes")).out == "2 jobs deleted\n"
    assert "mails: 100% of 3, ended" in (await cli("sets", "mails", "--follow")).out
