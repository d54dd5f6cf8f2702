"""The application: validates requests, performs operations, and maps errors to responses."""

from __future__ import annotations

import hashlib
import hmac
import inspect
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aioqless import errors, validation
from aioqless.contrib.http import Session, Sessions
from aioqless.contrib.http.json_api import (
    Endpoint,
    RequestRefused,
    checked,
    create_app,
    read_json,
    refusal_of,
    respond,
)
from aioqless.contrib.http.login_attempts import (
    LoginAttempts,
    TooManyAttempts,
    network_of,
)
from aioqless.contrib.human_tasks.api.checks import (
    COOKIE,
    SESSION_LIFETIME,
    check_address,
    check_origin,
)
from aioqless.contrib.human_tasks.api.openapi import KEY_PATTERN, TAB_PATTERN, describe
from aioqless.contrib.human_tasks.api.operations import OPERATIONS, Operation, TaskRequest
from aioqless.contrib.human_tasks.api.schemas import SessionInfo, SignIn
from aioqless.contrib.human_tasks.person import Person, name_of
from aioqless.contrib.human_tasks.task_queue import TaskQueue
from aioqless.runtime.log import log

Identify: TypeAlias = Callable[[Request], "str | Awaitable[str | None] | None"]
MIN_TOKEN_LENGTH = 16
STARTUP_TOKEN = "(startup token)"  # the name whose attempts are counted: people give any name


def create_api(
    queues: Mapping[str, TaskQueue],
    *,
    identify: Identify | None = None,
    startup_token: str | None = None,
    secret: str | Sequence[str] | None = None,
    title: str = "Human tasks",
) -> Starlette:
    """Create an ASGI application for some task queues; `/openapi.json` describes it.

    Args:
        queues: Task queues by their names in paths. The client of the first keeps the sessions.
        identify: Returns the user of a request, None without one. Without it users give a name, and
            only programs and browsers on this machine that know the start-up token are served.
        startup_token: At least 16 characters; default: a new one, logged as
            `human_tasks.token_created`.
        secret: Signs sessions; without one, they end with the process. Of several, the first signs
            and all of them verify.
        title: The title of the OpenAPI document.

    Raises:
        ValueError: No queues, a name that can't be in a path, a token or secret that is too short,
            or a token beside `identify`.
    """
    _check_queues(queues)
    sessions = Sessions(next(iter(queues.values())).client, COOKIE, SESSION_LIFETIME, secret)
    api = _Api(dict(queues), identify, _startup_token(identify, startup_token), sessions)
    document = msgspec.Raw(msgspec.json.encode(describe(title, queues)))

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


def _startup_token(identify: Identify | None, startup_token: str | None) -> str:
    """Return the token for signing in, a new one by default; an empty one with `identify`."""
    if startup_token is not None and (identify or len(startup_token) < MIN_TOKEN_LENGTH):
        raise ValueError(
            f"startup_token must have at least {MIN_TOKEN_LENGTH} characters, and goes without "
            "identify"
        )
    if identify is None and startup_token is None:
        startup_token = secrets.token_urlsafe(24)
        log.warning(
            "human_tasks.token_created",
            startup_token=startup_token,
            why="without identify, only who sends this token can sign in",
        )
    return startup_token or ""


class _Api:
    """The endpoints, with the task queues and the sessions."""

    def __init__(
        self,
        queues: dict[str, TaskQueue],
        identify: Identify | None,
        startup_token: str,
        sessions: Sessions,
    ) -> None:
        self._queues = queues
        self._identify = identify
        self._startup_token = startup_token  # empty with `identify`
        self._sessions = sessions
        self._attempts = LoginAttempts()

    def checked(self, endpoint: Endpoint) -> Endpoint:
        """Return an endpoint that checks address and origin, and maps errors to responses."""

        async def check_and_respond(request: Request) -> Response:
            if self._identify is None:
                check_address(request)
            if request.method not in ("GET", "HEAD"):
                check_origin(request)
            return await endpoint(request)

        return checked(check_and_respond, _refuse)

    def endpoint_of(self, operation: Operation) -> Endpoint:
        """Return the endpoint of an operation."""

        async def perform(request: Request) -> Response:
            session = await self._session(request)
            tasks = self._queues.get(request.path_params["queue"])
            if tasks is None:
                raise RequestRefused(404, "queue", "There is no such task queue.")
            if operation.method != "GET":
                self._check_token(request, session)
            body = await read_json(request, operation.body) if operation.body else None
            tab = _header(request, "x-tab", TAB_PATTERN) or ""
            key = _header(request, "idempotency-key", KEY_PATTERN)
            person = Person(session.name, _tab_session(session, tab))
            result = await operation.perform(
                TaskRequest(person, tasks, body, key, request.query_params)
            )
            return respond(result)

        return perform

    async def get_session(self, request: Request) -> Response:
        """Return who is signed in."""
        return self._session_info(await self._find_session(request))

    async def sign_in(self, request: Request) -> Response:
        """Open a session and set its cookie."""
        credentials = await read_json(request, SignIn)
        if self._identify is None:
            await self._check_startup_token(request, credentials.startup_token or "")
        name = await self._identify_user(request, credentials.name)
        if name is None:
            if self._identify is None:
                raise RequestRefused(400, "name", "Say a name.")
            raise RequestRefused(401, "unknown", "You are not signed in to the application.")
        session = await self._sessions.open(Person(name).name, self._startup_token)
        response = self._session_info(session)
        response.set_cookie(
            COOKIE,
            self._sessions.cookie(session),
            SESSION_LIFETIME,
            path=_root(request),
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    async def _check_startup_token(self, request: Request, token: str) -> None:
        """Refuse a wrong token, and any after too many attempts. At most 6 a minute are logged."""
        client = request.client.host if request.client else ""
        network = network_of(client)
        try:
            async with self._attempts.admit(STARTUP_TOKEN, network, known=False):
                valid = hmac.compare_digest(_bytes(token), _bytes(self._startup_token))
        except TooManyAttempts:
            if await self._attempts.is_first_refusal(network):
                log.warning("human_tasks.sign_in_refused", client=client, why="too many attempts")
            raise RequestRefused(
                429, "attempts", "Too many attempts. Try again in a minute."
            ) from None
        if not valid:
            log.warning("human_tasks.sign_in_refused", client=client, why="wrong start-up token")
            raise RequestRefused(
                403,
                "start",
                "The start-up token is missing or wrong: open the link that was printed at the "
                "start.",
            )
        await self._attempts.clear(STARTUP_TOKEN, network)

    async def sign_out(self, request: Request) -> Response:
        """End a session and delete its cookie."""
        if session := self._sessions.read(request.cookies.get(COOKIE)):
            self._check_token(request, session)
            await self._sessions.end(session)
        response = self._session_info(None)
        response.delete_cookie(COOKIE, path=_root(request), httponly=True, samesite="strict")
        return response

    def _check_token(self, request: Request, session: Session) -> None:
        if not self._sessions.is_token(session, request.headers.get("x-token", "")):
            why = "The session's token is missing or wrong: GET /session returns it."
            raise RequestRefused(403, "token", why)

    def _session_info(self, session: Session | None) -> Response:
        name, token = (session.name, self._sessions.token(session)) if session else (None, None)
        return respond(SessionInfo(name, token))

    async def _session(self, request: Request) -> Session:
        session = await self._find_session(request)
        if session is None:
            raise RequestRefused(401, "session", "Not signed in: POST /session first.")
        return session

    async def _find_session(self, request: Request) -> Session | None:
        """Return the open session of a request, if `identify` still returns its person."""
        session = self._sessions.read(request.cookies.get(COOKIE))
        if session is None or session.name != await self._identify_user(request, session.name):
            return None
        return session if await self._sessions.is_open(session, self._startup_token) else None

    async def _identify_user(self, request: Request, name: str | None) -> str | None:
        """Return the user of a request: by `identify`, or else the name that was given."""
        if self._identify is None:
            return name
        found = self._identify(request)
        return await found if inspect.isawaitable(found) else found


def _tab_session(session: Session, tab: str) -> str:
    """Return a digest that stands for one tab of a browser in the names of workers."""
    return hashlib.sha256(f"{session.nonce} {tab}".encode()).hexdigest()[:16]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


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


def _root(request: Request) -> str:
    return request.scope.get("root_path", "") or "/"
