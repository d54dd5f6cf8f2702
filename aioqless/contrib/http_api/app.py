"""The application: checks requests, performs operations, and describes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aioqless.client import Client, acting_as
from aioqless.contrib.http import Identification, Identify, Sessions, openapi
from aioqless.contrib.http.identity import matches
from aioqless.contrib.http.json_api import (
    Endpoint,
    RequestRefused,
    check_content_type,
    check_origin,
    checked,
    create_app,
    read_json,
    respond,
)
from aioqless.contrib.http.proxy_header import client_of
from aioqless.contrib.http.refusal_log import RefusalLog
from aioqless.contrib.http.uvicorn_server import TimedProtocol
from aioqless.contrib.http_api.grant import Grant
from aioqless.contrib.http_api.handler_types import PydanticSchemas
from aioqless.contrib.http_api.job_request import (
    KEY_PATTERN,
    JobRequest,
    read_key,
    read_query,
    run_while_connected,
)
from aioqless.contrib.http_api.operations import Operation, operations_of
from aioqless.contrib.http_api.schemas import Health, SetName
from aioqless.handlers import Handlers, Source
from aioqless.runtime.log import log

# Requests that wait at a time; of all tokens, half of what the server takes: others get in.
MAX_WAITS = TimedProtocol.MAX_CONNECTIONS // 2
MAX_WAITS_OF_TOKEN, MAX_WAITS_OF_BROWSER = 100, 5
MEANINGS = {
    400: "The request is malformed.",
    401: "The token is missing, wrong or expired.",
    403: "The token may not do this.",
    404: "There is no such job or job set, or the token doesn't see it.",
    408: "The request took too long.",
    409: "The job, or the job set, is in another state.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "Not what the handler takes; or the idempotency key was used for another body.",
    429: "The queue is full, or too many requests wait: see Retry-After.",
    503: "Redis is unavailable, or hasn't stored the change safely: repeat the request.",
}
KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Names this job: a repeated request finds it, and puts nothing.",
    "schema": {"type": "string", "pattern": KEY_PATTERN},
}


def create_api(
    client: Client,
    handlers: Source,
    *,
    identify: Identify,
    secret: str | Sequence[str] | None = None,
    origins: Sequence[str] = (),
    title: str = "Jobs",
) -> Starlette:
    """Create an ASGI application that puts and reads jobs; `/openapi.json` describes it.

    Args:
        client: Must be connected by the caller before the first request.
        handlers: Handlers whose jobs can be put, and modules of them.
        identify: Returns who sent a request, and so which jobs they may put and see; None for an
            unknown sender. `Tokens`, or a function of yours.
        secret: Signs the tokens of browsers, at least 16 characters. Give the same one to several
            processes. Of several, the first signs and all of them verify.
        origins: Origins whose pages may send requests with a browser's token; default: only that
            of the API.
        title: The title of the OpenAPI document.

    Raises:
        TypeError: The client has partitions, or a handler's annotation can't be resolved.
        ValueError: A pattern of `may_put` of a token fits no handler, a handler can't be served, or
            a secret is too short.
    """
    if hasattr(type(client), "partitions"):
        raise TypeError(
            "the HTTP API serves no namespace with partitions, whose jids say where a job is: give "
            "it a Client of a namespace of its own"
        )
    known = Handlers.collect(handlers)
    for handler in known:
        if "debounce" in handler.put_defaults:
            raise ValueError(
                f"{handler.klass} has debounce, which goes without a jid of the caller's, and the "
                "HTTP API gives each job one: leave it out"
            )
    identification = Identification(identify, Sessions("aioqless", 0, "Strict", secret))
    for token in identification.tokens or ():
        for pattern in token.may_put:
            if not any(matches(each.klass, [pattern]) for each in known):
                raise ValueError(f"may_put of token {token.name}: {pattern!r} fits no handler")
    api, operations = _Api(client, identification, origins), operations_of(known)
    document = msgspec.Raw(msgspec.json.encode(_describe(title, operations)))

    async def get_document(request: Request) -> Response:
        await api.authenticate(request)
        return respond(document)

    async def get_health(_request: Request) -> Response:
        await client.ping()
        return respond(Health(redis=True))

    routes = [
        Route("/openapi.json", checked(get_document)),
        Route("/health", checked(get_health)),
        *(
            Route(each.path, checked(api.endpoint_of(each)), methods=[each.method])
            for each in operations
        ),
    ]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
    )
    return create_app(routes, [cors] if origins else [])


class _Api:
    """The endpoints, and the owners of the requests that wait."""

    def __init__(
        self, client: Client, identification: Identification, origins: Sequence[str]
    ) -> None:
        self._client = client
        self._identification = identification
        self._origins = origins
        self._refusals = RefusalLog()
        self._waits: list[str] = []

    async def authenticate(self, request: Request) -> Grant:
        """Return what the sender of a request may do; log refusals, one a minute of an address."""
        if request.method not in ("GET", "HEAD"):
            check_origin(request, self._origins)
        found = await self._identification.find(request, None)
        if found is not None:
            return Grant(found)
        if self._refusals.is_due(client_of(request)):
            log.warning("http_api.token_refused", client=client_of(request))
        why = "The token is missing, wrong or expired: send `Authorization: Bearer <token>`."
        raise RequestRefused(401, "token", why, headers={"WWW-Authenticate": "Bearer"})

    def endpoint_of(self, operation: Operation) -> Endpoint:
        """Return the endpoint of an operation."""
        accepts = operation.body if operation.accepts is None else operation.accepts

        async def perform(request: Request) -> Response:
            grant = await self.authenticate(request)
            body = None
            if operation.body is not None:
                check_content_type(request)
                body = await read_json(request, accepts)
            job_request = JobRequest(
                self._client,
                self._identification,
                grant,
                request.path_params,
                read_query(request, operation.query),
                body,
                read_key(request) if operation.takes_key else None,
            )
            if not getattr(job_request.query, "wait", 0):
                with acting_as(grant.owner):
                    return respond(await operation.perform(job_request))
            async with self._waiting(grant):
                work = operation.perform(job_request)
                return respond(await run_while_connected(request, work))

        return perform

    @asynccontextmanager
    async def _waiting(self, grant: Grant) -> AsyncIterator[None]:
        most = MAX_WAITS_OF_BROWSER if grant.is_browser else MAX_WAITS_OF_TOKEN
        if len(self._waits) >= MAX_WAITS or self._waits.count(grant.owner) >= most:
            why = "Too many requests wait already: ask without `wait`."
            raise RequestRefused(429, "waits", why, headers={"Retry-After": "5"})
        self._waits.append(grant.owner)
        try:
            yield
        finally:
            self._waits.remove(grant.owner)


def _describe(title: str, operations: Sequence[Operation]) -> openapi.Schema:
    """Return the OpenAPI document."""
    pydantic = PydanticSchemas()
    document = openapi.describe(
        {"title": title, "version": "1", "description": "Put jobs, and get their results."},
        [_description(each) for each in operations],
        MEANINGS,
        {"token": {"type": "http", "scheme": "bearer"}},
        pydantic.describe,
    )
    document["components"]["schemas"] |= pydantic.components
    return document


def _description(operation: Operation) -> Operation:
    jid, name = {"type": "string", "minLength": 1, "maxLength": 512}, msgspec.json.schema(SetName)
    parameters = openapi.list_path_parameters(
        operation.path, lambda each: name if each == "name" else jid
    )
    if operation.query is not None:
        ((_, schema),) = msgspec.json.schema(operation.query)["$defs"].items()
        parameters += [
            {"name": each, "in": "query", "schema": found}
            for each, found in schema["properties"].items()
        ]
    of_reads = (400, 401, 403, 404, 422, 429, 503)
    return replace(
        operation,
        refusals=of_reads if operation.method == "GET" else tuple(MEANINGS),
        parameters=[*parameters, KEY] if operation.takes_key else parameters,
        security=[{"token": []}],
    )
