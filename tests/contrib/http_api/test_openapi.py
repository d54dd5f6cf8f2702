"""The OpenAPI description, tested against the API by schemathesis."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

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
from aioqless.contrib.http_api import create_api
from tests.contrib.http_api import jobs
from tests.contrib.http_api.conftest import SHOP, TOKENS

HEADERS = {"Authorization": f"Bearer {SHOP}"}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
SHORT, LONG = 15, 100  # examples of each operation


class Served(uvicorn.Server):
    """The API on its own port and event loop, in a thread, with a job in each state."""

    def __init__(self, redis_url: str) -> None:
        self._redis_url = redis_url
        self._started = threading.Event()
        self.url = ""
        self.jids: list[str] = []
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    async def _run(self) -> None:
        async with Client(self._redis_url, namespace="described") as client:
            for delay in (0, 60):
                jid = f"shop-{delay}"
                self.jids.append(jid)
                await client.put(jobs.greet.data(name="Ada"), jid=jid, delay=delay, tags=["x"])
            app = create_api(client, jobs, tokens=TOKENS)
            super().__init__(uvicorn.Config(app, port=0, log_config=None, ws="none"))
            await self.serve()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.url = f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}"
        self._started.set()

    def __enter__(self) -> Served:
        self._thread.start()
        assert self._started.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self.should_exit = True
        self._thread.join(60)


@pytest.fixture(scope="module")
def served(redis_url: str) -> Iterator[Served]:
    with Served(redis_url) as served:
        yield served


@pytest.fixture(scope="module")
def described(served: Served) -> Any:
    return schemathesis.openapi.from_url(f"{served.url}/openapi.json", headers=HEADERS)


@pytest.mark.parametrize("examples", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])
def test_responses_conform_to_the_description(
    described: Any, served: Served, examples: int
) -> None:
    session = requests.Session()
    session.trust_env = False
    statuses: set[int] = set()
    for found in described.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(
            case=operation.as_strategy()
            | operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)
        )
        def ask(case: Any) -> None:
            if "wait" in (case.query or {}):
                case.query["wait"] = min(case.query["wait"], 0.01, key=str)
            if "jid" in (case.path_parameters or {}):
                case.path_parameters["jid"] = served.jids[len(str(case.query)) % 2]
            answer = case.call(base_url=served.url, session=session, headers=HEADERS)
            statuses.add(answer.status_code)
            case.validate_response(answer, checks=CHECKS)

        ask()
    assert {200, 400, 404, 422} <= statuses


def test_every_operation_is_described_with_its_types(described: Any) -> None:
    raw = described.raw_schema
    named = {
        operation["operationId"]: operation
        for item in raw["paths"].values()
        for operation in item.values()
    }
    assert {"put_greet" not in named, "put_shop_greet" in named, "put_back_greet" in named} == {
        True
    }
    assert {"result_total", "put_many_whole", "get_job", "issue_token"} <= named.keys()
    references = set(json.dumps(raw).split('"#/components/schemas/')[1:])
    schemas = raw["components"]["schemas"]
    assert {reference.partition('"')[0] for reference in references} <= set(schemas)
    assert schemas["shop_greet_data"] == {
        "title": "shop_greet_data",
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "times": {"type": "integer", "default": 1, "format": "int64"},
        },
        "required": ["name"],
        "additionalProperties": False,
    }  # fmt: skip
    assert schemas["Total"]["required"] == ["count", "number"]
    lines = schemas["Order"]["properties"]["lines"]["items"]
    assert lines["properties"]["count"]["minimum"] == 1  # pydantic's
