"""The application: from a request to what is done, and from what came of it to an answer."""

from __future__ import annotations

import hashlib
import hmac
import inspect
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from redis.exceptions import ConnectionError as NotConnected
from redis.exceptions import TimeoutError as NotInTime
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aioqless import errors, validation
from aioqless.contrib.http_sessions import Session, Sessions
from aioqless.contrib.human_tasks.api.guard import (
    COOKIE,
    HEADERS,
    LASTS,
    Refused,
    check_address,
    check_origin,
    sent,
)
from aioqless.contrib.human_tasks.api.openapi import KEY, TAB, description
from aioqless.contrib.human_tasks.api.operations import OPERATIONS, Asked, Operation
from aioqless.contrib.human_tasks.api.shapes import SignIn, Trouble, Who
from aioqless.contrib.human_tasks.person import Person, name_of
from aioqless.contrib.human_tasks.task_queue import Desk
from aioqless.log import log

Identify: TypeAlias = Callable[[Request], "str | Awaitable[str | None] | None"]
Answer: TypeAlias = Callable[[Request], Awaitable[Response]]
SHORTEST_TOKEN = 16


def create_api(
    desks: Mapping[str, Desk],
    *,
    identify: Identify | None = None,
    startup_token: str | None = None,
    secret: str | Sequence[str] | None = None,
    title: str = "People at desks",
) -> Starlette:
    """Make an ASGI application for some desks; `/openapi.json` describes it.

    Args:
        desks: By the names that they have in its paths. The first one's client keeps the sessions.
        identify: Returns the user of a request, None without one. Without it users give a name, and only programs and browsers
            on this machine that know the start-up token are served.
        startup_token: At least 16 characters; without one, a new one, logged as `people.token_created`.
        secret: Signs sessions; without one, they end with the process. Of several, the first signs and all of them verify.
        title: The title of the description.

    Raises:
        ValueError: No desks, a name that can't be in a path, a token or secret that is too short, or a token beside `identify`.
    """
    _check_desks(desks)
    sessions = Sessions(next(iter(desks.values())).client, COOKIE, LASTS, secret)
    api = _Api(dict(desks), identify, _startup_token(identify, startup_token), sessions)
    told = msgspec.json.encode(description(title, desks))

    async def describe(request: Request) -> Response:
        return _json(told)

    routes = [
        Route("/openapi.json", api.guarded(describe)),
        Route("/session", api.guarded(api.who), methods=["GET"]),
        Route("/session", api.guarded(api.sign_in), methods=["POST"]),
        Route("/session", api.guarded(api.sign_out), methods=["DELETE"]),
        *(
            Route(each.path, api.guarded(api.performed(each)), methods=[each.method])
            for each in OPERATIONS
        ),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _not_routed})


def _check_desks(desks: Mapping[str, Desk]) -> None:
    for name in desks:
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
            raise ValueError(
                f"a desk's name {name!r} must consist of letters, digits, '.', '_' and '-': it is part of a path"
            )
    if not desks:
        raise ValueError("desks must not be empty: there is nothing to serve")


def _startup_token(identify: Identify | None, startup_token: str | None) -> str:
    """Return the token that signing in takes: a new one where none is given, an empty one where the
    application knows people."""
    if startup_token is not None and (identify or len(startup_token) < SHORTEST_TOKEN):
        raise ValueError(
            f"startup_token must have at least {SHORTEST_TOKEN} characters, and goes without identify"
        )
    if identify is None and startup_token is None:
        startup_token = secrets.token_urlsafe(24)
        log.warning(
            "people.token_created",
            startup_token=startup_token,
            why="without identify, only who sends this token can sign in",
        )
    return startup_token or ""


class _Api:
    """Owns the desks, and how people are known."""

    def __init__(
        self,
        desks: dict[str, Desk],
        identify: Identify | None,
        startup_token: str,
        sessions: Sessions,
    ) -> None:
        self._desks = desks
        self._identify = identify
        self._startup_token = startup_token  # empty where the application knows people
        self._sessions = sessions

    def guarded(self, answer: Answer) -> Answer:
        """An answer behind the door, where everything that can be refused is."""

        async def guarded(request: Request) -> Response:
            try:
                if self._identify is None:
                    check_address(request)
                if request.method not in ("GET", "HEAD"):
                    check_origin(request)
                return await answer(request)
            except Refused as refused:
                return _refusal(refused)
            except (errors.AioqlessError, ValueError, NotConnected, NotInTime) as error:
                return _refusal(_refused(error))

        return guarded

    def performed(self, operation: Operation) -> Answer:
        """What one of the operations answers."""

        async def performed(request: Request) -> Response:
            session = await self._session(request)
            desk = self._desks.get(request.path_params["desk"])
            if desk is None:
                raise Refused(404, "desk", "There is no such desk.")
            if operation.method != "GET" and not self._sessions.is_token(
                session, request.headers.get("x-token", "")
            ):
                raise Refused(
                    403, "token", "The session's token is missing or wrong: GET /session tells it."
                )
            body = _read(await sent(request), operation.body) if operation.body else None
            person = Person(session.name, _tab(session, _header(request, "x-tab", TAB) or ""))
            asked = Asked(
                person, desk, body, _header(request, "idempotency-key", KEY), request.query_params
            )
            return _json(msgspec.json.encode(await operation.perform(asked)))

        return performed

    async def who(self, request: Request) -> Response:
        session = await self._found(request)
        if session is None:
            return _json(msgspec.json.encode(Who(None, None)))
        return _json(msgspec.json.encode(Who(session.name, self._sessions.token(session))))

    async def sign_in(self, request: Request) -> Response:
        said = _read(await sent(request), SignIn)
        if self._identify is None and not hmac.compare_digest(
            _bytes(said.startup_token or ""), _bytes(self._startup_token)
        ):
            log.warning(
                "people.sign_in_refused",
                client=request.client.host if request.client else "",
                why="wrong start-up token",
            )
            raise Refused(
                403,
                "start",
                "The start-up token is missing or wrong: open the link that was printed at the start.",
            )
        name = await self._known(request, said.name)
        if name is None:
            refused = (
                (400, "name", "Say a name.")
                if self._identify is None
                else (401, "unknown", "The application doesn't know you.")
            )
            raise Refused(*refused)
        session = await self._sessions.open(Person(name).name, self._startup_token)
        answer = _json(msgspec.json.encode(Who(session.name, self._sessions.token(session))))
        secure = request.url.scheme == "https"
        kept = self._sessions.cookie(session)
        answer.set_cookie(
            COOKIE,
            kept,
            LASTS,
            path=_root(request),
            secure=secure,
            httponly=True,
            samesite="strict",
        )
        return answer

    async def sign_out(self, request: Request) -> Response:
        if session := self._sessions.read(request.cookies.get(COOKIE)):
            if not self._sessions.is_token(session, request.headers.get("x-token", "")):
                raise Refused(
                    403, "token", "The session's token is missing or wrong: GET /session tells it."
                )
            await self._sessions.end(session)
        answer = _json(msgspec.json.encode(Who(None, None)))
        answer.delete_cookie(COOKIE, path=_root(request), httponly=True, samesite="strict")
        return answer

    async def _session(self, request: Request) -> Session:
        session = await self._found(request)
        if session is None:
            raise Refused(401, "session", "Nobody is signed in: POST /session first.")
        return session

    async def _found(self, request: Request) -> Session | None:
        """The open session of a request, if the application still says that it is this person's."""
        session = self._sessions.read(request.cookies.get(COOKIE))
        if session is None or session.name != await self._known(request, session.name):
            return None
        return session if await self._sessions.is_open(session, self._startup_token) else None

    async def _known(self, request: Request, said: str | None) -> str | None:
        """Who somebody is, by the application or else by what he says."""
        if self._identify is None:
            return said
        found = self._identify(request)
        return await found if inspect.isawaitable(found) else found


def _tab(session: Session, tab: str) -> str:
    """The part of a worker's name that stands for one tab of a browser, and from which neither can
    be told."""
    return hashlib.sha256(f"{session.nonce} {tab}".encode()).hexdigest()[:16]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _refused(error: Exception) -> Refused:
    match error:
        case errors.LockLost():
            by = validation.readable(name_of(error.holder or ""))
            return Refused(409, "lost", f"{by or 'Somebody else'} has the job by now.", by or None)
        case errors.WrongState():
            return Refused(409, "state", f"Nobody has the job any more: it is {error.state}.")
        case errors.StaleRequest():
            return Refused(409, "repeated", "This was asked before, and something else since.")
        case errors.NoSuchJob():
            return Refused(404, "gone", "There is no such job any more.")
        case errors.InvalidData():
            return Refused(422, "answer", validation.readable(error))
        case NotConnected() | NotInTime():
            return Refused(503, "redis", "The queue can't be reached just now: try again.")
    return Refused(400, "request", validation.readable(error))


def _read(body: bytes, type_: Any) -> Any:
    try:
        return msgspec.json.decode(body or b"{}", type=type_)
    except (ValueError, RecursionError) as wrong:
        raise Refused(400, "request", validation.readable(wrong)) from None


def _header(request: Request, name: str, pattern: str) -> str | None:
    value = request.headers.get(name)
    if value is not None and not re.fullmatch(pattern, value):
        raise Refused(400, "request", f"The header {name} must match {pattern}.")
    return value


def _root(request: Request) -> str:
    return request.scope.get("root_path", "") or "/"


def _json(text: bytes, status: int = 200) -> Response:
    return Response(text, status, HEADERS, "application/json")


def _refusal(refused: Refused) -> Response:
    return _json(
        msgspec.json.encode(Trouble(refused.code, refused.message, refused.by)), refused.status
    )


async def _not_routed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = _refusal(Refused(error.status_code, "path", error.detail))
    answer.headers.update(error.headers or {})
    return answer
