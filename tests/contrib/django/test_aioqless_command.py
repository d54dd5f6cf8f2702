"""`manage.py aioqless`, as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aioqless import Client
from tests.contrib.django.conftest import DATABASES

ROOT = Path(__file__).parents[3]


def manage(url: str, namespace: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "AIOQLESS_NAMESPACE": "other",
        "PYTHONPATH": str(ROOT),
        "SHOP_DATABASES": json.dumps(DATABASES),
        "SHOP_TASKS": json.dumps({"url": url, "namespace": namespace}),
    }
    command = [sys.executable, "tests/contrib/django/shop/manage.py", "aioqless", *words]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


async def test_commands_use_the_redis_and_namespace_of_the_backend(
    client: Client, redis_url: str
) -> None:
    await client.queue("mail").put("Letter")
    ended = manage(redis_url, client.namespace, "queues", "--json")
    assert [each["name"] for each in json.loads(ended.stdout)] == ["mail"], ended.stderr


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        ("queues --backend other", 1, "CommandError: The connection 'other' doesn't exist."),
        ("nothing", 2, "No such command 'nothing'"),
        ("--help --settings tests.contrib.django.shop.settings", 0, "Usage: aioqless"),
        ("worker --help", 0, "aioqless_worker [OPTIONS]"),
    ],
)
def test_wrong_words_and_help(redis_url: str, words: str, code: int, why: str) -> None:
    ended = manage(redis_url, "ql", *words.split())
    assert (ended.returncode, why in ended.stdout + ended.stderr) == (code, True), ended
