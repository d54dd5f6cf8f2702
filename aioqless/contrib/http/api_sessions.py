"""Who sends requests to the HTTP API: a token or a cookie with each, or an application's user."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from aioqless.contrib.http import openapi
from aioqless.contrib.http.identification import Identification
from aioqless.contrib.http.identity import Identity
from aioqless.contrib.http.json_api import (
    RequestRefused,
    check_content_type,
    check_origin,
    read_json,
    respond,
)
from aioqless.contrib.http.proxy_header import client_of
from aioqless.contrib.http.refusal_log import RefusalLog
from aioqless.contrib.http.sessions import Session
from aioqless.contrib.http.tokens import bearer_of
from aioqless.runtime.log import log


class SignIn(msgspec.Struct, forbid_unknown_fields=True):
    """The token to trade for a cookie; an application with an `identify` of its own needs none."""

    token: Annotated[str, Meta(max_length=512)] | None = None


class SessionInfo(msgspec.Struct):
    """Who is signed in, and the CSRF token of the session; null without one."""

    person: str | None
    token: str | None


class ApiSessions:
    """Finds senders, and begins and ends the sessions of browsers."""

    def __init__(self, identification: Identification) -> None:
        self.identification = identification
        self._sessions = identification.sessions
        self._refusals = RefusalLog()

    async def find(self, request: Request) -> tuple[Identity, Session | None]:
        """Return who sent a request, and the session of its browser; raise RequestRefused.

        A change needs the CSRF token of its session. The user of a session must be the one that
        `identify` still returns: a page must not act for another one.
        """
        changes = request.method not in ("GET", "HEAD")
        if changes:
            check_origin(request)
        sends_token = bearer_of(request) is not None
        session = None if sends_token else self._sessions.read(request)
        identity = await self.identification.find(request, session)
        if identity is None or (session and session.name != identity.name):
            raise self._refusal(request)
        if session is None and "x-token" in request.headers and not sends_token:
            raise self._refusal(request)  # of a page whose session is over
        if changes and session:
            self._check_csrf_token(request, session)
        elif changes and not sends_token:
            check_content_type(request)  # which forms of other sites can't have
        return identity, session

    async def get(self, request: Request) -> Response:
        """Return who is signed in."""
        try:
            identity, session = await self.find(request)
        except RequestRefused:
            return self._respond(None)
        return self._respond(identity.name, session)

    async def sign_in(self, request: Request) -> Response:
        """Begin a session and set its cookie."""
        self.identification.check_sender(request)
        check_origin(request)
        check_content_type(request)
        credentials = await read_json(request, SignIn)
        if self.identification.tokens:
            session = self.identification.sign_in(credentials.token or "")
        else:
            identity = await self.identification.find(request, None)
            session = self._sessions.begin(identity.name) if identity else None
        if session is None:
            raise self._refusal(request)
        response = self._respond(session.name, session)
        response.headers["Set-Cookie"] = self._sessions.cookie(session, request)
        return response

    async def sign_out(self, request: Request) -> Response:
        """End a session and delete its cookie."""
        check_origin(request)
        if session := self._sessions.read(request):
            self._check_csrf_token(request, session)
            self._sessions.end(session)
        response = self._respond(None)
        response.headers["Set-Cookie"] = self._sessions.cookie(None, request)
        return response

    def _check_csrf_token(self, request: Request, session: Session) -> None:
        if not self._sessions.is_token(session, request.headers.get("x-token", "")):
            why = "The session's token is missing or wrong: GET /session returns it."
            raise RequestRefused(403, "csrf", why)

    def _respond(self, name: str | None, session: Session | None = None) -> Response:
        return respond(SessionInfo(name, self._sessions.token(session) if session else None))

    def _refusal(self, request: Request) -> RequestRefused:
        """Return why an unknown sender is refused; log it, once a minute for each network."""
        if self._refusals.is_due(client_of(request)):
            log.warning("http_api.token_refused", client=client_of(request))
        why = (
            "The token is missing, wrong or expired: send `Authorization: Bearer <token>`, or "
            "begin a session by POST /session."
        )
        return RequestRefused(401, "token", why, headers={"WWW-Authenticate": "Bearer"})


SESSION_OPERATIONS = (
    openapi.Operation(
        method="GET", path="/session", name="get_session",
        summary="Who is signed in, and the token for changes", answer=SessionInfo,
        refusals=(403, 503),
    ),
    openapi.Operation(
        method="POST", path="/session", name="sign_in",
        summary="Begin a session; its cookie is set", answer=SessionInfo, body=SignIn,
        refusals=(400, 401, 403, 408, 413, 415, 503),
    ),
    openapi.Operation(
        method="DELETE", path="/session", name="sign_out", summary="End the session",
        answer=SessionInfo, refusals=(403, 503),
    ),
)  # fmt: skip
