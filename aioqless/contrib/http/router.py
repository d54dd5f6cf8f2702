"""Routers: groups of operations that one HTTP API serves."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, cast

import msgspec
from starlette.requests import Request

from aioqless.client import Client
from aioqless.contrib.http import openapi
from aioqless.contrib.http.identification import Identification
from aioqless.contrib.http.identity import Identity
from aioqless.contrib.http.json_api import RequestRefused, refusal_of
from aioqless.contrib.http.openapi import Schema
from aioqless.contrib.http.tokens import Tokens
from aioqless.runtime.tasks import cancel_and_wait

T = TypeVar("T")
R = TypeVar("R")
KEY_PATTERN = "^[!-~]{1,255}$"
TAB_PATTERN = "^[A-Za-z0-9_-]{1,64}$"


@dataclass(frozen=True)
class ApiRequest:
    """A request whose sender is known; query and body are of the operation's types.

    Attributes:
        identification: Issues tokens of browsers.
        identity: Who sent it.
        nonce: The number of the browser's session; empty without one.
        tab: Which of a browser's tabs has sent it, if that matters.
        path: Values of the path's parameters.
        query: Values of the query.
        body: The body.
        key: The idempotency key.
    """

    identification: Identification
    identity: Identity
    nonce: str
    tab: str
    path: Mapping[str, str]
    query: Any
    body: Any
    key: str | None


@dataclass(frozen=True, kw_only=True)
class Operation(openapi.Operation, Generic[R]):
    """An operation, and the function that performs it.

    Attributes:
        perform: Returns the response to a request of a router.
        accepts: The type that a body is read as; default: that of `body`.
        query: The type of the query.
        takes_key: Whether it takes an idempotency key.
        takes_tab: Whether it depends on the browser's tab.
        parameter: Returns the schema of a parameter of the path.
    """

    perform: Callable[[R], Coroutine[Any, Any, Any]]
    accepts: Any = None
    query: Any = None
    takes_key: bool = False
    takes_tab: bool = False
    parameter: Callable[[str], Schema] = lambda _: {"type": "string"}

    def on(self, make: Callable[[ApiRequest], R]) -> Operation[ApiRequest]:
        """Return the operation on requests of the API, of which `make` makes the router's."""
        perform = self.perform

        async def perform_on(request: ApiRequest) -> Any:
            return await perform(make(request))

        return replace(cast("Operation[Any]", self), perform=perform_on)


@dataclass(frozen=True, kw_only=True)
class Router:
    """Operations on one subject.

    Attributes:
        client: Its connection is checked by `/health`.
        operations: The operations.
        refuse: Returns how a request is refused that raised an error.
        check_tokens: Raises ValueError for tokens that fit nothing here.
        describe_type: Returns the schema of a type that msgspec doesn't know, and adds components.
        components: Schemas that `describe_type` has added.
    """

    client: Client
    operations: Sequence[Operation[ApiRequest]]
    refuse: Callable[[Exception], RequestRefused] = refusal_of
    check_tokens: Callable[[Tokens], None] = lambda _: None
    describe_type: Callable[[type], Schema] | None = None
    components: Mapping[str, Schema] = field(default_factory=dict)


def read_header(request: Request, name: str, pattern: str) -> str | None:
    """Return a header that may be sent once."""
    values = request.headers.getlist(name)
    if len(values) > 1 or not all(re.fullmatch(pattern, each) for each in values):
        raise RequestRefused(400, "request", f"{name} must match {pattern}, and be sent once.")
    return values[0] if values else None


def read_query(request: Request, type_: Callable[..., Any] | None) -> Any:
    """Return the query of a request as a type."""
    if type_ is None:
        return None
    several = {name: request.query_params.getlist(name) for name in request.query_params}
    values = {
        name: each if name == "tags" or len(each) > 1 else each[0] for name, each in several.items()
    }
    try:
        return msgspec.convert(values, type_, strict=False)
    except msgspec.ValidationError as wrong:
        raise RequestRefused(400, "request", str(wrong)) from None


async def run_while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Run what may wait for long, until the client closes its connection."""

    async def wait_for_disconnect() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task, gone = asyncio.create_task(work), asyncio.create_task(wait_for_disconnect())
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise RequestRefused(408, "slow", "The client has closed the connection.")
    except asyncio.CancelledError:  # by the server, whose log should have no traceback of it
        raise RequestRefused(503, "stopped", "The server is shutting down. Try again.") from None
    finally:
        await cancel_and_wait(task, gone)
