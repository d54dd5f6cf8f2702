"""The HTTP API: one application for the operations of all routers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aioqless.client import acting_as
from aioqless.contrib.http import openapi
from aioqless.contrib.http.api_sessions import SESSION_OPERATIONS, ApiSessions
from aioqless.contrib.http.identification import Identification
from aioqless.contrib.http.identity import Identify
from aioqless.contrib.http.json_api import (
    Endpoint,
    RequestRefused,
    check_content_type,
    checked,
    create_app,
    read_json,
    respond,
)
from aioqless.contrib.http.proxy_header import proxy_middleware
from aioqless.contrib.http.router import (
    KEY_PATTERN,
    TAB_PATTERN,
    ApiRequest,
    Operation,
    Router,
    read_header,
    read_query,
    run_while_connected,
)
from aioqless.contrib.http.sessions import Sessions
from aioqless.contrib.http.tokens import Tokens
from aioqless.contrib.http.uvicorn_server import TimedProtocol

COOKIE = "aioqless-api"
SESSION_LIFETIME = 7 * 86_400  # seconds
# Requests that wait at a time; of all senders, half of what the server takes: others get in.
MAX_WAITS = TimedProtocol.MAX_CONNECTIONS // 2
MAX_WAITS_OF_TOKEN, MAX_WAITS_OF_BROWSER = 100, 5
MEANINGS = {
    400: "The request is malformed.",
    401: "The token is missing, wrong or expired.",
    403: "The sender may not do this, or the page is of another origin or has no CSRF token.",
    404: "There is no such job, job set or task queue, or the sender doesn't see it.",
    408: "The request took too long.",
    409: "The job, or the job set, is in another state, or another person has it.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "Not what the handler takes; or the idempotency key was used for another body.",
    429: "The queue is full, or too many requests wait: see Retry-After.",
    503: "Redis is unavailable, or hasn't stored the change safely: repeat the request.",
}
OF_READS = (400, 401, 403, 404, 422, 429, 503)
KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Names this attempt: a repeated request is not executed again.",
    "schema": {"type": "string", "pattern": KEY_PATTERN},
}
TAB = {
    "name": "X-Tab",
    "in": "header",
    "description": "Which of a browser's tabs this is: each has reservations of its own.",
    "schema": {"type": "string", "pattern": TAB_PATTERN},
}


class Health(msgspec.Struct):
    """Redis answers."""

    redis: bool


def create_api(
    *routers: Router,
    identify: Identify | None = None,
    secret: str | Sequence[str] | None = None,
    trusted_proxies: Sequence[str] = (),
    origins: Sequence[str] = (),
    title: str = "Jobs",
) -> Starlette:
    """Create an ASGI application for the operations of routers; `/openapi.json` describes it.

    Args:
        routers: `job_router(...)` of `aioqless.contrib.http_api`, and `task_router(...)` of
            `aioqless.contrib.human_tasks.api`. The caller connects their clients before the first
            request.
        identify: Returns who sent a request, None for an unknown sender: `Tokens`, `ProxyHeader`,
            or a function of yours. Without it, only this machine is served, to whom knows the
            start-up token, which is logged as `web.token_created`.
        secret: Signs cookies and the tokens of browsers, at least 16 characters. Give the same one
            to several processes. Of several, the first signs and all of them verify.
        trusted_proxies: Addresses or networks of reverse proxies whose X-Forwarded-For and
            X-Forwarded-Proto are trusted; `unix` for a server that listens on a Unix socket.
        origins: Origins whose pages may send requests with a token; default: only that of the API.
        title: The title of the OpenAPI document.

    Raises:
        ValueError: There are no routers, a pattern of a token fits nothing, or a secret is too
            short.
    """
    if not routers:
        raise ValueError("create_api needs a router: there is nothing to serve")
    sessions = Sessions(COOKIE, SESSION_LIFETIME, "Strict", secret)
    identification = Identification(Tokens.at_startup() if identify is None else identify, sessions)
    for each in routers:
        if identification.tokens and not identification.tokens.local:
            each.check_tokens(identification.tokens)
    senders = ApiSessions(identification)
    api = _Api(senders)
    document = msgspec.Raw(msgspec.json.encode(_describe(title, routers, COOKIE)))

    async def get_document(request: Request) -> Response:
        await senders.find(request)
        return respond(document)

    async def get_health(_request: Request) -> Response:
        for each in routers:
            await each.client.ping()
        return respond(Health(redis=True))

    routes = [
        Route("/openapi.json", checked(get_document)),
        Route("/health", checked(get_health)),
        Route("/session", checked(senders.get), methods=["GET"]),
        Route("/session", checked(senders.sign_in), methods=["POST"]),
        Route("/session", checked(senders.sign_out), methods=["DELETE"]),
        *(
            Route(each.path, checked(api.endpoint_of(each), router.refuse), methods=[each.method])
            for router in routers
            for each in router.operations
        ),
    ]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "X-Tab"],
    )
    return create_app(routes, [*proxy_middleware(trusted_proxies), *([cors] if origins else [])])


class _Api:
    """The endpoints, and the owners of the requests that wait."""

    def __init__(self, senders: ApiSessions) -> None:
        self._senders = senders
        self._waits: list[str] = []

    def endpoint_of(self, operation: Operation[ApiRequest]) -> Endpoint:
        """Return the endpoint of an operation."""
        accepts = operation.body if operation.accepts is None else operation.accepts

        async def perform(request: Request) -> Response:
            identity, session = await self._senders.find(request)
            body = None
            if operation.body is not None:
                check_content_type(request)
                body = await read_json(request, accepts)
            key = tab = None
            if operation.takes_key:
                key = read_header(request, "Idempotency-Key", KEY_PATTERN)
            if operation.takes_tab:
                tab = read_header(request, "X-Tab", TAB_PATTERN)
            api_request = ApiRequest(
                self._senders.identification,
                identity,
                session.nonce if session else "",
                tab or "",
                request.path_params,
                read_query(request, operation.query),
                body,
                key,
            )
            with acting_as(identity.name):
                if not getattr(api_request.query, "wait", 0):
                    return respond(await operation.perform(api_request))
                async with self._waiting(api_request):
                    work = operation.perform(api_request)
                    return respond(await run_while_connected(request, work))

        return perform

    @asynccontextmanager
    async def _waiting(self, request: ApiRequest) -> AsyncIterator[None]:
        owner = request.identity.name
        is_browser = request.identity.issuer or request.nonce
        most = MAX_WAITS_OF_BROWSER if is_browser else MAX_WAITS_OF_TOKEN
        if len(self._waits) >= MAX_WAITS or self._waits.count(owner) >= most:
            why = "Too many requests wait already: ask without `wait`."
            raise RequestRefused(429, "waits", why, headers={"Retry-After": "5"})
        self._waits.append(owner)
        try:
            yield
        finally:
            self._waits.remove(owner)


def _describe(title: str, routers: Iterable[Router], cookie: str) -> openapi.Schema:
    """Return the OpenAPI document."""
    hooks = [each.describe_type for each in routers if each.describe_type]

    def describe_type(type_: type) -> openapi.Schema:
        for each in hooks:
            return each(type_)
        raise NotImplementedError

    document = openapi.describe(
        {"title": title, "version": "1", "description": "Jobs, and tasks for people."},
        [
            *SESSION_OPERATIONS,
            *(_description(each) for router in routers for each in router.operations),
        ],
        MEANINGS,
        {
            "token": {"type": "http", "scheme": "bearer"},
            "session": {"type": "apiKey", "in": "cookie", "name": cookie},
            "csrf": {"type": "apiKey", "in": "header", "name": "X-Token"},
        },
        describe_type,
    )
    for each in routers:
        document["components"]["schemas"] |= each.components
    return document


def _description(operation: Operation[ApiRequest]) -> openapi.Operation:
    parameters = openapi.list_path_parameters(operation.path, operation.parameter)
    if operation.query is not None:
        ((_, schema),) = msgspec.json.schema(operation.query)["$defs"].items()
        parameters += [
            {
                "name": each,
                "in": "query",
                "required": each in schema.get("required", ()),
                "schema": found,
            }
            for each, found in schema["properties"].items()
        ]
    parameters += [KEY] if operation.takes_key else []
    parameters += [TAB] if operation.takes_tab else []
    reads = operation.method == "GET"
    return replace(
        operation,
        refusals=OF_READS if reads else tuple(MEANINGS),
        parameters=parameters,
        security=[{"token": []}, {"session": []} if reads else {"session": [], "csrf": []}],
    )
