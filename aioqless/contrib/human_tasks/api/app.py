"""The application: validates requests, performs operations, and maps errors to responses."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aioqless import errors, validation
from aioqless.contrib.http import (
    Identification,
    Identify,
    Identity,
    Session,
    Sessions,
    Tokens,
)
from aioqless.contrib.http.identity import matches
from aioqless.contrib.http.json_api import (
    Endpoint,
    RequestRefused,
    check_content_type,
    check_origin,
    checked,
    create_app,
    read_json,
    refusal_of,
    respond,
)
from aioqless.contrib.http.proxy_header import client_of
from aioqless.contrib.http.refusal_log import RefusalLog
from aioqless.contrib.http.tokens import bearer_of
from aioqless.contrib.human_tasks.api.openapi import KEY_PATTERN, TAB_PATTERN, describe
from aioqless.contrib.human_tasks.api.operations import OPERATIONS, Operation, TaskRequest
from aioqless.contrib.human_tasks.api.schemas import SessionInfo, SignIn
from aioqless.contrib.human_tasks.person import Person, name_of
from aioqless.contrib.human_tasks.task_queue import TaskQueue
from aioqless.runtime.log import log

COOKIE = "aioqless-tasks"
SESSION_LIFETIME = 7 * 86_400  # seconds


def create_api(
    queues: Mapping[str, TaskQueue],
    *,
    identify: Identify | None = None,
    secret: str | Sequence[str] | None = None,
    title: str = "Human tasks",
) -> Starlette:
    """Create an ASGI application for some task queues; `/openapi.json` describes it.

    Args:
        queues: Task queues by their names in paths.
        identify: Returns who sent a request, None for no user: a function of yours, `Tokens` or
            `ProxyHeader`. Without it, only programs and browsers on this machine that know the
            start-up token are served, which is logged as `web.token_created`.
        secret: Signs sessions; without one, they end with the process. Of several, the first signs
            and all of them verify.
        title: The title of the OpenAPI document.

    Raises:
        ValueError: No queues, a name that can't be in a path, or a secret that is too short.
    """
    _check_queues(queues)
    sessions = Sessions(COOKIE, SESSION_LIFETIME, "Strict", secret)
    identification = Identification(Tokens.at_startup() if identify is None else identify, sessions)
    api = _Api(dict(queues), identification)
    document = msgspec.Raw(msgspec.json.encode(describe(title, queues, COOKIE)))

    async def get_document(_request: Request) -> Response:
        return respond(document)

    routes = [
        Route("/openapi.json", api.checked(get_document)),
        Route("/session", api.checked(api.get_session), methods=["GET"]),
        Route("/session", api.checked(api.sign_in), methods=["POST"]),
        Route("/session", api.checked(api.sign_out), methods=["DELETE"]),
        *(
            Route(each.path, api.checked(api.endpoint_of(each)), methods=[each.method])
            for each in OPERATIONS
        ),
    ]
    return create_app(routes)


def _check_queues(queues: Mapping[str, TaskQueue]) -> None:
    for name in queues:
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
            raise ValueError(
                f"the name of a task queue {name!r} must consist of letters, digits, '.', '_' and "
                "'-': it is part of a path"
            )
    if not queues:
        raise ValueError("queues must not be empty: there is nothing to serve")


class _Api:
    """The endpoints, with the task queues and the sessions."""

    def __init__(self, queues: dict[str, TaskQueue], identification: Identification) -> None:
        self._queues = queues
        self._identification = identification
        self._sessions = identification.sessions
        self._refusals = RefusalLog()

    def checked(self, endpoint: Endpoint) -> Endpoint:
        """Return an endpoint that checks where a request comes from, and responds to errors."""

        async def check_and_respond(request: Request) -> Response:
            self._identification.check_sender(request)
            if request.method not in ("GET", "HEAD"):
                check_origin(request)
                check_content_type(request)
            return await endpoint(request)

        return checked(check_and_respond, _refuse)

    def endpoint_of(self, operation: Operation) -> Endpoint:
        """Return the endpoint of an operation."""

        async def perform(request: Request) -> Response:
            identity, session = await self._find(request)
            if identity is None:
                raise RequestRefused(401, "session", "Not signed in: POST /session first.")
            name = request.path_params["queue"]
            tasks = self._queues.get(name)
            if tasks is None:
                raise RequestRefused(404, "queue", "There is no such task queue.")
            if not matches(name, identity.may_reserve):
                raise RequestRefused(403, "queue", f"You may not work on the task queue {name}.")
            if operation.method != "GET" and session:
                self._check_token(request, session)
            body = await read_json(request, operation.body) if operation.body else None
            tab = _header(request, "x-tab", TAB_PATTERN) or ""
            key = _header(request, "idempotency-key", KEY_PATTERN)
            person = Person(identity.name, _tab_session(session, tab))
            result = await operation.perform(
                TaskRequest(person, tasks, body, key, request.query_params)
            )
            return respond(result)

        return perform

    async def get_session(self, request: Request) -> Response:
        """Return who is signed in."""
        identity, session = await self._find(request)
        return self._session_info(session if identity else None)

    async def sign_in(self, request: Request) -> Response:
        """Begin a session and set its cookie."""
        credentials = await read_json(request, SignIn)
        if self._identification.tokens:
            session = self._identification.sign_in(credentials.token or "")
        else:
            identity = await self._identification.find(request, None)
            session = self._sessions.begin(Person(identity.name).name) if identity else None
        if session is None:
            if self._refusals.is_due(client_of(request)):
                log.warning("human_tasks.sign_in_refused", client=client_of(request))
            raise RequestRefused(
                401, "unknown", "The token is missing or wrong, or you are not signed in."
            )
        response = self._session_info(session)
        response.headers["Set-Cookie"] = self._sessions.cookie(session, request)
        return response

    async def sign_out(self, request: Request) -> Response:
        """End a session and delete its cookie."""
        if session := self._sessions.read(request):
            self._check_token(request, session)
            self._sessions.end(session)
        response = self._session_info(None)
        response.headers["Set-Cookie"] = self._sessions.cookie(None, request)
        return response

    def _check_token(self, request: Request, session: Session) -> None:
        if not self._sessions.is_token(session, request.headers.get("x-token", "")):
            why = "The session's token is missing or wrong: GET /session returns it."
            raise RequestRefused(403, "token", why)

    def _session_info(self, session: Session | None) -> Response:
        name, token = (session.name, self._sessions.token(session)) if session else (None, None)
        return respond(SessionInfo(name, token))

    async def _find(self, request: Request) -> tuple[Identity | None, Session | None]:
        """Return who sent a request, and the session unless a token is sent with each request.

        The user of a session must be the one that `identify` still returns.
        """
        if bearer_of(request) is not None:
            return await self._identification.find(request, None), None
        session = self._sessions.read(request)
        if session is None:
            return None, None
        identity = await self._identification.find(request, session)
        if identity is None or identity.name != session.name:
            return None, None
        return identity, session


def _tab_session(session: Session | None, tab: str) -> str:
    """Return a digest that stands for one tab of a browser in the names of workers."""
    nonce = session.nonce if session else ""
    return hashlib.sha256(f"{nonce} {tab}".encode()).hexdigest()[:16]


def _refuse(error: Exception) -> RequestRefused:
    match error:
        case errors.LockLost():
            by = validation.to_text(name_of(error.holder or ""))
            why = f"{by or 'Another person'} has the job, by another reservation than this one."
            return RequestRefused(409, "lost", why, by or None)
        case errors.WrongState():
            why = f"The job is no longer reserved: it is {error.state}."
            return RequestRefused(409, "state", why)
    return refusal_of(error)


def _header(request: Request, name: str, pattern: str) -> str | None:
    value = request.headers.get(name)
    if value is not None and not re.fullmatch(pattern, value):
        raise RequestRefused(400, "request", f"The header {name} must match {pattern}.")
    return value
