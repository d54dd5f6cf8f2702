"""One HTTP API with the routers of jobs and human tasks."""

from __future__ import annotations

import pytest
from starlette.types import ASGIApp

from aioqless import Client
from aioqless.contrib.http import Token, Tokens, create_api
from aioqless.contrib.http.router import Router
from aioqless.contrib.http_api import job_router
from aioqless.contrib.human_tasks import TaskQueue
from aioqless.contrib.human_tasks.api import task_router
from tests.contrib.http_api import jobs

SHOP, EVE = "s" * 32, "e" * 32
KNOWN = Tokens(
    [Token("shop", SHOP, may_put=["*"], may_read=["*"], may_reserve=["*"]), Token("eve", EVE)]
)
SECRET = "0123456789abcdef"


def routers(client: Client) -> tuple[Router, Router]:
    return job_router(client, jobs), task_router({"review": TaskQueue(client, "review")})


@pytest.fixture
def api(client: Client) -> ASGIApp:
    return create_api(*routers(client), identify=KNOWN, secret=SECRET)
