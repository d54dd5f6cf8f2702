"""Python examples of the pages for operators do what the pages say."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aioqless import Client, Job, Settings, Worker, job
from aioqless.contrib import private_redis
from aioqless.contrib.encryption import Encryption
from aioqless.testing import RunCompleted, perform
from tests.guides.examples import Program, modules
from tests.guides.test_python_examples import PAGER
from tests.guides.test_python_examples import PAGES as GUIDES
from tests.pages import PAGES, ROOT, blocks, name_of

ELSEWHERE = {
    "README.md": "examples/test_get_started.py",
    "docs/CONTRIBUTING.md": "guides/test_contributing_page.py",
    "docs/lake-pipeline.md": "contrib/lake/test_pages.py",
    "docs/lake-readers.md": "examples/test_lake_readers.py",
    "docs/spark-source.md": "contrib/lake/test_pages.py",
    "docs/flask.md": "contrib/flask/test_page.py",
    "docs/dashboard.md": "contrib/dashboard/test_page.py",
    "docs/django.md": "contrib/django/test_page.py",
    "docs/embedding.md": "embedding/test_page.py",
    "docs/faq.md": "examples/test_coming_from.py",
    "docs/http-api.md": "contrib/http_api/test_page.py",
    "docs/human-tasks.md": "contrib/human_tasks/test_page.py",
    "docs/recipes.md": "guides/test_recipes.py",
    "docs/testing.md": "guides/test_testing_page.py",
    "docs/coming-from": "examples/test_coming_from.py",
    "docs/get-started": "examples/test_get_started.py",
}
BANK = """
class bank:
    async def settle(invoice): return True
"""


@job(klass="Greet")
def greet(job: Job) -> None: ...


@pytest.fixture(autouse=True)
def environment(client: Client, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let clients of the examples use the namespace of the test; forget modules afterwards."""
    monkeypatch.setenv("AIOQLESS_URL", redis_url)
    monkeypatch.setenv("AIOQLESS_NAMESPACE", client.namespace)
    with modules():
        yield


async def run_page(client: Client, page: str, setup: str = "") -> dict[str, Any]:
    """Run the examples of a page without a worker; return their names."""
    program = Program(client, setup, worker=False)
    await program.run(page)
    return program.names


def python(code: str, **variables: str) -> str:
    """Return what a program prints."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        timeout=60,
    ).stdout


async def test_encrypted_data_is_not_readable_in_redis(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENCRYPTION_KEY", Encryption.new_key())
    await run_page(client, "encryption.md")
    (job,) = await client.queue("billing").peek()
    stored = await client.redis.hgetall(f"{client.namespace}:j:{job.jid}")
    assert "app.jobs.charge" in str(stored) and "4929 1234" not in str(stored)


async def test_fencing_token_is_written(client: Client) -> None:
    names = await run_page(client, "guarantees.md", PAGER + BANK)
    statements: list[tuple[object, ...]] = []

    class Pool:
        async def execute(self, *statement: object) -> str:
            statements.append(statement)
            return "UPDATE 0"

    done = await perform(names["settle"].data(invoice=7), resources={names["asyncpg"].Pool: Pool()})
    assert isinstance(done.outcome, RunCompleted)
    assert statements[0][1:3] == (7, True)


def test_logging_of_the_page_shows_the_job() -> None:
    basic, configured, *_ = blocks(ROOT / "docs" / "monitoring.md", "python")
    line = "logging.getLogger('app').info('sent')"
    bound = f"import structlog; structlog.contextvars.bind_contextvars(jid='4f2a')\n{line}"
    assert python(basic + line) == "INFO:app:sent\n"
    assert python(configured + bound) == "INFO app [4f2a] sent\n"


async def test_metrics_of_the_page_show_klasses_before_and_after_a_deploy(
    client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, listing, export, comparison = blocks(ROOT / "docs" / "monitoring.md", "python")
    names: dict[str, Any] = {}
    exec(listing + export + comparison, names)
    await client.put(greet.data())
    settings = Settings(burst=True, version_label="v1")
    await Worker(client, [greet, names["exports"]], settings=settings).run()
    assert capsys.readouterr().out.startswith("default Greet completed 0.")
    await names["main"]()
    await names["compare"](client)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["Greet"] * 2


async def test_scratch_folder_holds_a_download(client: Client) -> None:
    folders: list[Path] = []

    async def download(url: str, path: Path) -> None:
        folders.append(path.parent)

    names = await run_page(client, "operating.md")
    names["download"] = download
    done = await perform(names["unpack"].data("https://example.com"))
    assert isinstance(done.outcome, RunCompleted)
    assert not folders[0].exists()


def test_private_server_starts(tmp_path: Path) -> None:
    for number, code in enumerate(blocks(ROOT / "docs" / "private-redis.md", "python")):
        folder = tmp_path / str(number)
        try:
            told = python(code, AIOQLESS_DATA=str(folder))
            assert (str(folder) in told) == (number == 0)
            assert private_redis.running(folder)
        finally:
            private_redis.stop(folder)


def test_examples_of_every_page_run() -> None:
    own = Path(__file__).read_text("utf-8")
    unknown = []
    for page in PAGES:
        name = name_of(page)
        known = (
            page.name in GUIDES
            or name in ELSEWHERE
            or str(Path(name).parent) in ELSEWHERE
            or f'"{page.name}"' in own
        )
        if blocks(page, "python") and not known:
            unknown.append(name)
    assert unknown == []
    assert [file for file in ELSEWHERE.values() if not (ROOT / "tests" / file).exists()] == []
