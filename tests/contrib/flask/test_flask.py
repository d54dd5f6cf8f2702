"""The Flask extension, with a real worker."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, current_app, g

from aioqless import Client, Job, Settings, Worker, job
from aioqless.contrib.flask import Aioqless
from aioqless.contrib.flask.app_context import with_app_context, worker_sources
from tests.cli.conftest import restored_process
from tests.contrib.flask import shop

ROOT = Path(__file__).parents[3]


@pytest.fixture
def app(redis_url: str, namespace: str) -> Iterator[Flask]:
    app = shop.create_app(AIOQLESS_URL=redis_url, AIOQLESS_NAMESPACE=namespace)
    yield app
    app.extensions["aioqless"].close()


async def burst(app: Flask, client: Client) -> None:
    settings = Settings(queues=("mail",), burst=True, shutdown_timeout=0)
    await Worker(client, *worker_sources(app, [shop]), settings=settings).run()


async def test_request_puts_a_job_that_runs_with_the_application_context(
    app: Flask, client: Client
) -> None:
    answer = await asyncio.to_thread(app.test_client().post, "/greetings/Ann")
    jid = answer.text
    later = await client.queue("mail").put(shop.agreet.data(name="Bob"))
    await burst(app, client)
    assert await client.jobs.result(jid) == "hello Ann from corner shop"
    assert await client.jobs.result(later) == "hello Bob from corner shop"


def test_context_of_a_plain_function_is_left_in_its_thread(app: Flask) -> None:
    seen: list[tuple[int, str]] = []

    @job(klass="See")
    def see(job: Job[Any]) -> int:
        g.seen = seen
        return threading.get_ident()

    called: list[int] = []
    thread = threading.Thread(
        target=lambda: called.append(int(str(with_app_context(see, app).fn(None))))
    )
    thread.start()
    thread.join()
    assert seen == [(called[0], "corner shop")]
    assert called[0] != threading.get_ident()
    assert not current_app


def test_missing_and_wrong_configuration_is_refused() -> None:
    empty = Flask("empty")
    with empty.app_context(), pytest.raises(RuntimeError, match="init_app"):
        _ = Aioqless().client
    with pytest.raises(ValueError, match="redis://"):
        shop.create_app(AIOQLESS_URL="http://x")


async def test_command_runs_a_worker_with_the_configuration_of_the_application(
    app: Flask, client: Client, redis_url: str
) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SHOP_AIOQLESS_URL": redis_url,
        "SHOP_AIOQLESS_NAMESPACE": f'"{client.namespace}"',
    }
    flask = [sys.executable, "-m", "flask", "--app", "tests.contrib.flask.shop", "aioqless"]
    jid = await client.queue("mail").put(shop.greet.data(name="Ann"))
    elsewhere = await client.queue("mail").put(shop.greet_in_a_process.data(name="Bob"))
    words = ["worker", "tests.contrib.flask.shop", "-w", "1"]  # its handler names the queue
    worker = await asyncio.create_subprocess_exec(*flask, *words, cwd=ROOT, env=environment)
    try:
        job = await client.jobs.wait(jid, timeout=60)
        assert job.state == "complete"
        assert await elsewhere.result(timeout=60) == "hello Bob from corner shop"
        worker.send_signal(signal.SIGTERM)
        assert await worker.wait() == 0
    finally:
        if worker.returncode is None:
            worker.kill()
            await worker.wait()


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        ("os", 1, "there is no handler in os"),
        ("--wrong", 2, "no such option: --wrong"),
        ("--help", 0, "usage: flask aioqless worker"),
    ],
)
def test_refusal_of_the_command_is_one_line(app: Flask, words: str, code: int, why: str) -> None:
    with restored_process():
        ended = app.test_cli_runner().invoke(args=["aioqless", "worker", *words.split()])
    assert (ended.exit_code, why in ended.output) == (code, True), ended.output
