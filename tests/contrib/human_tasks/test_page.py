"""The programs of docs/human-tasks.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from aioqless import Client
from aioqless.contrib.human_tasks import TaskQueue
from tests.contrib.human_tasks.conftest import HOST, Browser

PAGE = (Path(__file__).parents[3] / "docs" / "human-tasks.md").read_text("utf-8")
FIRST, MOUNTED, IDENTIFIED = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_first_program_runs_unchanged(redis_url: str) -> None:
    environment = os.environ | {"AIOQLESS_URL": redis_url}
    done = subprocess.run(
        [sys.executable, "-c", FIRST],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("Is this spam? 300 s left\nada\n", "")


async def test_api_is_mounted_as_documented(client: Client) -> None:
    namespace: dict[str, Any] = {}
    exec(
        "import aioqless\nfrom aioqless.contrib.human_tasks import TaskQueue\n" + MOUNTED, namespace
    )
    await client.queue("review").put("Review", jid="a")
    ada = Browser(namespace["application"](client, "s" * 32), "ada", host=f"{HOST}/people")
    await ada.sign_in(token="s" * 32)
    answer = await ada.http.post("/tasks/spam/reservation", json={}, headers={"X-Token": ada.token})
    assert answer.json()["task"]["jid"] == "a"


async def test_people_are_identified_as_documented(client: Client) -> None:
    class App:
        async def user_name(self, request: Any) -> str:
            return "ada"

    namespace: dict[str, Any] = {
        "my_app": App(),
        "queues": {"spam": TaskQueue(client, "review")},
        "SECRET": "0123456789abcdef",
    }
    exec(
        "from starlette.requests import Request\nfrom aioqless.contrib.human_tasks.api import "
        "task_router\nfrom aioqless.contrib.http import Identity, create_api\napp = None\n",
        namespace,
    )
    exec(IDENTIFIED.replace("create_api(", "app = create_api("), namespace)
    ada = Browser(namespace["app"], "anybody", address="10.0.0.7", host="http://desk.example")
    assert (await ada.sign_in()).json()["person"] == "ada"
