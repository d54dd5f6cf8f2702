"""`aioqless worker`: signals, exit codes, logs, and jobs of a killed worker."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aioqless import Client
from tests.cli.conftest import PATIENCE, Aioqless, Start
from tests.conftest import Until
from tests.unit import core_only
from tests.worker.conftest import BUSY
from tests.worker.states import is_gone, state_of


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_lets_running_jobs_finish_and_starts_no_more(
    client: Client, folder: Path, start: Start, until: Until, number: signal.Signals
) -> None:
    await client.queue("mail").put("Wait", jid="a")
    await client.queue("mail").put("Slow", jid="b")
    async with start("-c", "1") as worker:
        await until(lambda: worker.logged("job.started"))
        worker.process.send_signal(number)
        await until(lambda: worker.logged("worker.shutdown_started"))
        (folder / "go").touch()
        assert await worker.ended() == 0
    assert (await state_of(client, "a"), await state_of(client, "b")) == ("complete", "waiting")
    # it also finds the files of workers that former tests killed
    others = (*BUSY, "worker.recovered")
    events = [line["event"] for line in worker.lines if line["event"] not in others]
    assert events == [
        "redis.used",
        "worker.started",
        "job.started",
        "worker.shutdown_started",
        "job.completed",
        "worker.stopped",
    ]
    assert all({"timestamp", "level"} <= line.keys() for line in worker.lines)
    assert worker.logged("job.started")[0]["jid"] == "a"
    assert worker.lines[0]["url"] == client.url


@pytest.mark.parametrize("klass", ["Fork", "ForkAndAwait", "ForkInThread"])
async def test_fork_that_a_handler_leaves_exits_and_its_worker_goes_on(
    client: Client, start: Start, until: Until, klass: str
) -> None:
    await client.queue("mail").put(klass, jid="a")
    async with start("-c", "1") as worker:
        (ended,) = await until(lambda: worker.logged("job.fork_ended"))
        await until(lambda: is_gone(ended["pid"]))
        await until(lambda: worker.logged("job.completed"))
        await client.queue("mail").put("Slow", jid="b")
        await until(lambda: len(worker.logged("job.completed")) == 2)
        worker.process.terminate()
        assert await worker.ended() == 0
    assert ended["jid"] == "a"
    assert [await state_of(client, jid) for jid in "ab"] == ["complete", "complete"]
    assert [line["jid"] for line in worker.logged("job.started")] == ["a", "b"]


async def test_forgotten_await_is_logged_with_its_job_and_line(
    client: Client, start: Start, until: Until
) -> None:
    await client.queue("mail").put("ForgetToAwait", jid="a")
    async with start("-c", "1") as worker:
        (line,) = await until(lambda: worker.logged("job.not_awaited"))
    assert (line["jid"], line["klass"]) == ("a", "ForgetToAwait")
    assert line["why"] == "coroutine 'StoredJob.log' was never awaited"
    assert re.search(r"\.py:\d+$", line["where"])


@pytest.mark.long
async def test_worker_runs_jobs_where_only_the_core_is_installed(
    client: Client, folder: Path, redis_url: str
) -> None:
    await client.queue("mail").put("Slow", jid="a")
    ended = await asyncio.to_thread(
        core_only.run, "worker", "jobs", "-q", "mail", "--burst",
        folder=folder,
        environment={"AIOQLESS_URL": redis_url, "AIOQLESS_NAMESPACE": client.namespace},
    )  # fmt: skip
    assert (ended.returncode, await state_of(client, "a")) == (0, "complete"), ended.stderr


async def test_killed_worker_leaves_no_child_process(
    client: Client, start: Start, until: Until
) -> None:
    await client.queue("mail").put("Apart", 1, jid="a")
    await client.queue("mail").put("Apart", jid="b")
    async with start("--processes", "2") as worker:
        told = await until(
            lambda: [
                line
                for line in worker.logged("apart.told")
                if len(worker.logged("apart.told")) == 2
            ]
        )
        await until(lambda: worker.logged("job.completed"))  # one is idle, the other busy
        assert {line["jid"] for line in told} == {"a", "b"}  # they log as the worker does
        worker.process.kill()
        await worker.ended()
        for line in told:
            await until(lambda: is_gone(line["process"]))  # noqa: B023


async def test_ctrl_c_is_handled_by_the_worker_not_by_its_processes(
    client: Client, start: Start, until: Until
) -> None:
    await client.queue("mail").put("Apart", 1, jid="a")
    async with start("--shutdown-timeout", "0.1", "--kill-after", "0.1") as worker:
        process = (await until(lambda: worker.logged("apart.told")))[0]["process"]
        os.kill(process, signal.SIGINT)
        os.kill(process, signal.SIGTERM)
        worker.process.send_signal(signal.SIGINT)
        assert await worker.ended() == 0
    back = await client.jobs.get("a")
    assert back and (back.state, back.remaining) == ("waiting", 5) and is_gone(process)


async def test_worker_has_the_given_name_and_queues(
    client: Client, start: Start, until: Until
) -> None:
    async with start(
        "--name", "w-1", "-q", "billing", "--order", "round-robin", "-c", "3"
    ) as worker:
        assert worker.logged("worker.started")[0]["queues"] == ["mail", "billing"]
        assert [each.name for each in await until(client.workers.counts)] == ["w-1"]
        await client.queue("billing").put("Slow", jid="a")
        await until(lambda: worker.logged("job.completed"))


async def test_queue_with_a_plus_is_added_to_those_of_the_handlers(start: Start) -> None:
    async with start("-q", "+import-*") as worker:
        assert worker.logged("worker.started")[0]["queues"] == ["mail", "import-*", "default"]


@pytest.mark.parametrize(
    ("options", "code", "why"),
    [
        (["-c", "0"], 1, "concurrency must be an integer >= 1 (got 0)"),
        (
            ["-q", "a=four"],
            1,
            "queue 'a=four' must be a name, optionally followed by `,weight` and `=limit`",
        ),
        (
            ["--order", "random"],
            1,
            "order 'random' must be one of ordered, round-robin, shuffled, weighted",
        ),
        (["--log-level", "loud"], 1, "log level 'loud' must be one of debug, info, warning, error"),
        (["--concurency", "3"], 2, "no such option: --concurency; did you mean --concurrency?"),
        (["-c"], 2, "argument -c/--concurrency: expected one argument"),
        (["--max-memory", "5X"], 2, "'5X' must be a number of bytes, or of them with K, M or G"),
    ],
)
async def test_invalid_options_are_refused_with_a_reason(
    cli: Aioqless, options: list[str], code: int, why: str
) -> None:
    ended = await cli("worker", "examples.site_audit.pages", *options)
    assert (ended.code, why in " ".join(ended.err.split())) == (code, True), ended.err


@pytest.mark.parametrize(
    ("module", "text", "why"),
    [
        ("jobz", "", "aioqless: there is no module 'jobz' in "),
        ("app/jobs.py", "", "; did you mean 'app.jobs'?"),
        ("jobs.slow", "", "; did you mean 'jobs'?"),
        ("redis://:secret@localhost", "", "a URL is no module: say where Redis is by --url"),
        (
            "bare",
            "async def greet(job): ...",
            "aioqless: there is no handler in bare: decorate functions with @aioqless.job",
        ),
        ("broken", "import antimatter", "ModuleNotFoundError: No module named 'antimatter'"),
    ],
)
async def test_unusable_modules_are_refused_with_a_reason(
    aioqless: Aioqless, folder: Path, module: str, text: str, why: str
) -> None:
    if text:
        (folder / f"{module}.py").write_text(text)
    ended = await aioqless("worker", module)
    assert ended.code == 1 and why in ended.err


@pytest.mark.parametrize("options", [[], ["-w", "2"]])
def test_too_low_open_file_limit_is_refused_with_a_hint(
    folder: Path, environment: dict[str, str], options: list[str]
) -> None:
    command = [
        "sh",
        "-c",
        'ulimit -n 24 && exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "aioqless",
        "worker",
        "jobs",
        *options,
    ]
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1 and ended.stderr.count("\n") == 1, ended.stderr
    assert "may open 24 file descriptors" in ended.stderr and "ulimit -n 1024" in ended.stderr


async def test_worker_without_modules_is_refused(cli: Aioqless) -> None:
    ended = await cli("worker")
    assert ended.code == 2 and "the following arguments are required: MODULE" in ended.err


async def test_worker_waits_for_an_unreachable_redis(
    folder: Path, environment: dict[str, str]
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "aioqless", "worker", "jobs", "--url", "redis://127.0.0.1:1",
        cwd=folder, env=environment, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr
    async with asyncio.timeout(PATIENCE):
        while b"worker.redis_lost" not in (line := await process.stderr.readline()):
            assert line, "it has ended"
        process.terminate()
        assert await process.wait() == 0
