"""`manage.py aioqless_worker`, as a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from aioqless import Client
from aioqless.contrib.django.backend import Backend
from aioqless.contrib.django.management.commands.aioqless_worker import Command
from tests.cli.conftest import restored_process
from tests.contrib.django.conftest import DATABASES
from tests.contrib.django.shop.models import Order
from tests.contrib.django.shop.tasks import count_orders

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "tests/contrib/django/shop/manage.py", "aioqless_worker"]


async def start(options: Mapping[str, object], *words: str) -> asyncio.subprocess.Process:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SHOP_DATABASES": json.dumps(DATABASES),
        "SHOP_TASKS": json.dumps(options),
    }
    return await asyncio.create_subprocess_exec(
        *COMMAND, *words, cwd=ROOT, env=environment, stderr=asyncio.subprocess.PIPE
    )


async def test_worker_serves_the_queues_of_settings_and_handlers_in_several_processes(
    client: Client, redis_url: str, sqlite: str
) -> None:
    orders = await Order.objects.using(sqlite).acount()
    name = "tests.contrib.django.shop.tasks.greet"
    jid = await client.queue("mail").put(name, {"args": ["Ann"], "kwargs": {}})
    packed = await client.queue("packing").put("shop.Pack")
    counted = await client.put(count_orders.data())
    worker = await start({"url": redis_url, "namespace": client.namespace}, "-w", "1", "-v", "0")
    try:
        assert (await client.jobs.wait(packed, timeout=60)).state == "complete"
        assert await counted.result(timeout=60) == orders  # in a process that has set up Django
        job = await client.jobs.wait(jid, timeout=60)
        assert job.state == "complete" and await client.jobs.result(jid) == "hello Ann"
        worker.send_signal(signal.SIGTERM)
        await worker.communicate()
        assert worker.returncode == 0
    finally:
        if worker.returncode is None:
            worker.kill()
            await worker.wait()


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        ("--backend other", 1, "CommandError: The connection 'other' doesn't exist."),
        ("--wrong", 2, "no such option: --wrong"),
        ("nowhere.jobs -v 1", 1, "CommandError: there is no module 'nowhere.jobs'"),
        ("--help", 0, "usage: manage.py aioqless_worker [OPTIONS] [MODULE]..."),
    ],
)
def test_refusal_is_one_line_with_an_exit_code(
    backend: Backend, capsys: pytest.CaptureFixture[str], words: str, code: int, why: str
) -> None:
    with restored_process(), pytest.raises(SystemExit) as ended:
        Command().run_from_argv(["manage.py", "aioqless_worker", *words.split()])
    printed = capsys.readouterr()
    assert (ended.value.code, why in printed.out + printed.err) == (code, True)
