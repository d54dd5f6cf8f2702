"""The programs of docs/coming-from, and what the guides say of other queues' habits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from aioqless import Client, Settings, Worker
from tests.conftest import Until
from tests.pages import ROOT, blocks
from tests.server import OwnServer

DOCS = ROOT / "docs"

# How the other queues run their programs: `main` puts a job, and their worker works beside it.
RUNS = {
    "bullmq": """
asyncio.run(main())
""",
    "dramatiq": """
main()
worker = dramatiq.Worker(dramatiq.get_broker(), worker_timeout=100)
worker.start()
dramatiq.get_broker().join("text")
worker.stop()
""",
    "huey": """
consumer = huey.create_consumer(workers=1, periodic=False)
consumer.start()
main()
consumer.stop(graceful=True)
""",
    "saq": """
import asyncio
from saq import Worker

async def run():
    working = asyncio.create_task(Worker(**settings).start())
    await main()
    working.cancel()
    await asyncio.wait([working])

asyncio.run(run())
""",
    "taskiq": """
import asyncio
from taskiq.api import run_receiver_task

async def run():
    await broker.startup()
    working = asyncio.create_task(run_receiver_task(broker))
    await main()
    working.cancel()

asyncio.run(run())
""",
}


@pytest.mark.parametrize(
    "page", sorted((DOCS / "coming-from").glob("*.md")), ids=lambda page: page.stem
)
async def test_program_on_the_page_puts_a_job_that_completes(
    page: Path, redis_url: str, namespace: str, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "".join(code for code in blocks(page, "python") if code.startswith("# aioqless"))
    jobs = ModuleType("app.jobs")
    for name in ("app.jobs", "shop.jobs"):
        monkeypatch.setitem(sys.modules, name, jobs)
    # This test has an event loop already.
    program = program.replace("delay=60", "delay=0.01").removesuffix("asyncio.run(main())\n")
    exec(program, vars(jobs))
    monkeypatch.setenv("AIOQLESS_URL", redis_url)
    monkeypatch.setenv("AIOQLESS_NAMESPACE", namespace)
    settings = vars(jobs).get("settings", Settings())
    async with Client() as client, Worker(client, jobs, settings=settings):
        await jobs.main()
        await until(client.jobs.complete_jids)
        assert await client.jobs.failed_counts() == {}


@pytest.mark.site  # run where the other queues are installed
@pytest.mark.parametrize("library", RUNS)
def test_program_of_the_other_queue_does_the_same(
    library: str, own_server: OwnServer, tmp_path: Path
) -> None:
    pytest.importorskip(library)
    page = DOCS / "coming-from" / f"{library}.md"
    (program,) = (code for code in blocks(page, "python") if code.startswith(f"# {library}"))
    file = tmp_path / "program.py"
    file.write_text(program.replace("redis://localhost:6379", own_server.url) + RUNS[library])
    ended = subprocess.run(
        [sys.executable, file], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "5\n"), ended.stderr
