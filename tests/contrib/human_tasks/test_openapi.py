"""The OpenAPI description, tested against the API by schemathesis."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import requests
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from aioqless import Client
from aioqless.contrib.human_tasks import TaskQueue
from aioqless.contrib.human_tasks.api import create_api
from aioqless.contrib.human_tasks.api.checks import COOKIE
from aioqless.contrib.human_tasks.api.operations import OPERATIONS
from tests.contrib.human_tasks.conftest import TOKEN

REQUESTS = 40  # examples of each operation
checked = settings(
    max_examples=REQUESTS,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class Served(uvicorn.Server):
    """The API on its own port and event loop, in a thread; there are always jobs to reserve."""

    def __init__(self, redis_url: str) -> None:
        self._redis_url = redis_url
        self._told = threading.Event()
        self.url = ""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    async def _run(self) -> None:
        async with Client(self._redis_url, namespace="described") as client:
            for number in range(20):
                await client.queue("review").put("Review", {"n": number}, jid=f"j{number}")
            queues = {"review": TaskQueue(client, "review")}
            super().__init__(
                uvicorn.Config(
                    create_api(queues, startup_token=TOKEN), port=0, log_config=None, ws="none"
                )
            )
            await self.serve()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.url = f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}"
        self._told.set()

    def __enter__(self) -> Served:
        self._thread.start()
        assert self._told.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self.should_exit = True
        self._thread.join(60)


@pytest.fixture(scope="module")
def served(redis_url: str) -> Iterator[Served]:
    with Served(redis_url) as served:
        yield served


@pytest.fixture(scope="module")
def headers(served: Served) -> dict[str, str]:
    """Return the headers of a signed-in person."""
    with httpx.Client(base_url=served.url, trust_env=False) as http:
        answer = http.post("/session", json={"name": "Ada", "startup_token": TOKEN})
        return {"Cookie": f"{COOKIE}={http.cookies[COOKIE]}", "X-Token": answer.json()["token"]}


@pytest.fixture(scope="module")
def described(served: Served) -> Any:
    return schemathesis.openapi.from_url(f"{served.url}/openapi.json")


OPERATION_NAMES = [
    ("GET", "/session"),
    ("POST", "/session"),
    ("DELETE", "/session"),
    *((each.method, each.path) for each in OPERATIONS),
]


@pytest.mark.parametrize(("method", "path"), OPERATION_NAMES, ids=str)
def test_responses_conform_to_the_description(
    described: Any, served: Served, headers: dict[str, str], method: str, path: str
) -> None:
    operation = described[path][method]
    statuses: set[int] = set()
    session = requests.Session()
    session.trust_env = False

    @checked
    @given(
        case=operation.as_strategy()
        | operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)
    )
    def ask(case: Any) -> None:
        answer = case.call(
            base_url=served.url, session=session, headers=headers if method != "DELETE" else None
        )
        statuses.add(answer.status_code)
        case.validate_response(
            answer,
            checks=[
                not_a_server_error,
                status_code_conformance,
                content_type_conformance,
                response_schema_conformance,
            ],
        )

    ask()
    assert len(statuses) > 1 or path == "/session" or method == "GET"


def test_every_operation_is_described_with_its_types(described: Any) -> None:
    raw = described.raw_schema
    named = {
        (method.upper(), path): operation
        for path, item in raw["paths"].items()
        for method, operation in item.items()
    }
    assert set(named) == set(OPERATION_NAMES)
    assert len({operation["operationId"] for operation in named.values()}) == len(named)
    references = set(json.dumps(raw).split('"#/components/schemas/')[1:])
    assert {reference.partition('"')[0] for reference in references} <= set(
        raw["components"]["schemas"]
    )
    for (method, path), operation in named.items():
        assert (method == "POST") == ("requestBody" in operation), path
