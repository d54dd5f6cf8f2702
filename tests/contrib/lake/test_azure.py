"""A lake on Azure's emulator, which npm has."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

from aioqless import Client
from tests.contrib.lake.conftest import RunLakeCommand
from tests.contrib.lake.object_store import BUCKET, running_azurite
from tests.contrib.lake.test_events import complete_jobs

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not shutil.which("npx"), reason="no npx, which installs Azurite"),
]


@pytest.fixture(scope="module")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with running_azurite(tmp_path_factory.mktemp("azurite")) as environment:
        yield environment


@pytest.fixture
def run(
    azurite: dict[str, str], run_lake_command: RunLakeCommand, monkeypatch: pytest.MonkeyPatch
) -> RunLakeCommand:
    for name, value in azurite.items():
        monkeypatch.setenv(name, value)
    return run_lake_command


@pytest.mark.parametrize("scheme", ["az", "abfs"])
def test_commands_work_on_azure(
    run: RunLakeCommand, redis_url: str, namespace: str, scheme: str
) -> None:
    async def complete() -> str:
        async with Client(redis_url, namespace=namespace) as client:
            await complete_jobs(client, 5)
            return (await client.jobs.complete_jids())[0]

    jid = asyncio.run(complete())
    source = ("--url", redis_url, "--namespace", namespace)
    lake = ("--lake", f"{scheme}://{BUCKET}/{scheme}")
    code, out, err = run("archive", *source, *lake, "--entries", "3")
    assert (code, "5 events in 2 batches" in out) == (0, True), err
    code, out, err = run("stats", *lake, "--json")
    assert (code, [row["completed"] for row in json.loads(out)]) == (0, [5]), err
    for command in (["check", *lake], ["erase", "--jid", jid, *source, *lake], ["tables", *lake]):
        code, _, err = run(*command)
        assert code == 0, err


@pytest.mark.parametrize(
    ("lake", "changed", "why"),
    [
        ("az://no-such-container/lake", {}, "the bucket doesn't exist"),
        (
            f"az://{BUCKET}/lake",
            {"AZURE_STORAGE_ACCOUNT_KEY": "d3Jvbmc="},
            "the credentials are refused",
        ),
    ],
)
def test_wrong_settings_are_refused(
    run: RunLakeCommand,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    lake: str,
    changed: dict[str, str],
    why: str,
) -> None:
    for name, value in changed.items():
        monkeypatch.setenv(name, value)
    code, _, err = run("archive", "--url", redis_url, "--lake", lake)
    assert code == 1 and why in err
