"""A lake on Azure's emulator, which npm has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contrib.lake.conftest import RunLakeCommand
from tests.contrib.lake.lakes import ask, complete_jobs
from tests.contrib.lake.servers import BUCKET, running_azurite

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", autouse=True)
def azurite(npx_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("azurite")
    with running_azurite(folder) as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        yield


@pytest.mark.parametrize("scheme", ["az", "abfs"])
def test_commands_work_on_azure(
    run_lake_command: RunLakeCommand, redis_url: str, namespace: str, scheme: str
) -> None:
    jid, *_ = ask(lambda client: complete_jobs(client, 5), redis_url, namespace)
    source = ("--url", redis_url, "--namespace", namespace)
    for command, printed in (
        (("archive", *source, "--entries", "3"), "5 events in 2 batches"),
        (("tables",), "5 events: tables of"),
        (("stats", "--json"), '"completed": 5'),
        (("check",), ""),
        (("erase", "--jid", jid, *source), ""),
    ):
        lake = ("--lake", f"{scheme}://{BUCKET}/{scheme}")
        code, out, err = run_lake_command(*command, *lake)
        assert (code, printed in out) == (0, True), err


@pytest.mark.parametrize(
    ("container", "key", "why"),
    [
        ("no-such-container", None, "the bucket doesn't exist"),
        (BUCKET, "d3Jvbmc=", "the credentials are refused"),
    ],
)
def test_wrong_settings_are_refused(
    run_lake_command: RunLakeCommand,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    container: str,
    key: str | None,
    why: str,
) -> None:
    if key:
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", key)
    lake = f"az://{container}/lake"
    code, _, err = run_lake_command("archive", "--url", redis_url, "--lake", lake)
    assert code == 1 and why in err
