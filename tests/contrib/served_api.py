"""An API that schemathesis tests against its OpenAPI description."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import requests
import uvicorn
from hypothesis import HealthCheck, Phase, given, settings
from starlette.types import ASGIApp


class ServedApi(uvicorn.Server):
    """An application on its own port and event loop, in a thread."""

    def __init__(self, opened: Callable[[], AbstractAsyncContextManager[ASGIApp]]) -> None:
        self._opened = opened
        self._started = threading.Event()
        self.url = ""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    async def _run(self) -> None:
        async with self._opened() as app:
            super().__init__(uvicorn.Config(app, port=0, log_config=None, ws="none"))
            await self.serve()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.url = f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}"
        self._started.set()

    def __enter__(self) -> ServedApi:
        self._thread.start()
        assert self._started.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self.should_exit = True
        self._thread.join(60)

    def check(
        self,
        operation: Any,
        examples: int,
        headers: dict[str, str] | None,
        change: Callable[[Any], object] = lambda _: None,
    ) -> set[int]:
        """Send valid and invalid requests; return the statuses of the answers.

        Args:
            operation: An operation, as schemathesis has it.
            examples: Number of requests.
            headers: Headers of each.
            change: Changes a request before it is sent.
        """
        # imported here: it takes long, and all processes of a run import this file
        from schemathesis import GenerationMode
        from schemathesis.checks import not_a_server_error
        from schemathesis.specs.openapi import checks

        described = [
            not_a_server_error,
            checks.status_code_conformance,
            checks.content_type_conformance,
            checks.response_schema_conformance,
        ]
        statuses: set[int] = set()
        session = requests.Session()
        session.trust_env = False

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
            | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
        )
        def ask(case: Any) -> None:
            change(case)
            answer = case.call(base_url=self.url, session=session, headers=headers)
            statuses.add(answer.status_code)
            case.validate_response(answer, checks=described)

        ask()
        return statuses
