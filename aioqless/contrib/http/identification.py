"""Identification: the one answer to who sent a request, for all applications."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from starlette.requests import Request

from aioqless.contrib.http.identity import Identify, Identity, IdentityRefused
from aioqless.contrib.http.origin_checks import is_from_this_machine
from aioqless.contrib.http.sessions import Session, Sessions
from aioqless.contrib.http.tokens import Tokens, bearer_of


class Identification:
    """Finds who sent a request by one `identify`, and lets browsers trade tokens for cookies.

    Attributes:
        sessions: The sessions of browsers.
        tokens: The tokens, if `identify` is of tokens.
    """

    def __init__(self, identify: Identify, sessions: Sessions) -> None:
        self.sessions = sessions
        self.tokens = identify if isinstance(identify, Tokens) else None
        self._identify = identify

    def check_sender(self, request: Request) -> None:
        """Raise IdentityRefused for a request from elsewhere, if only this machine is served."""
        if self.tokens and self.tokens.local and not is_from_this_machine(request):
            raise IdentityRefused(
                "Without users, only http://localhost on this machine is served, without a "
                "reverse proxy. Configure tokens or the header of a proxy to allow other clients."
            )

    async def find(self, request: Request, session: Session | None) -> Identity | None:
        """Return who sent a request; raise IdentityRefused.

        Args:
            request: The request.
            session: The session of its browser, if it has one.
        """
        self.check_sender(request)
        if self.tokens is None:
            found = self._identify(request)
            return await found if inspect.isawaitable(found) else found
        text = bearer_of(request)
        if text is None:
            return self.holder(session) if session else None
        return self.tokens(request) or self.tokens.read_issued(text, self.sessions.keys)

    def sign_in(self, secret: str) -> Session | None:
        """Return a session for the holder of a token; None for a wrong one."""
        found = self.tokens.find(secret) if self.tokens else None
        return self.sessions.begin(found[0].name, found[1]) if found else None

    def issue(
        self, issuer: Identity, may_put: Sequence[str], jids: Sequence[str], seconds: float
    ) -> str:
        """Return a browser's token, which may do no more than its issuer.

        Raises:
            IdentityRefused: The issuer was identified by something else than a token.
        """
        for token in self.tokens or ():
            if token.name == issuer.name:
                return token.issue(
                    self.sessions.keys[0], may_put=may_put, jids=jids, seconds=seconds
                )
        raise IdentityRefused("Only the holder of a token issues tokens.")

    def is_open(self, session: Session) -> bool:
        """Return whether an open stream of a session may continue.

        An application's own `identify` is asked again when the browser reconnects.
        """
        return self.tokens is None or self.holder(session) is not None

    def holder(self, session: Session) -> Identity | None:
        """Return who has traded a token for a session, unless it or the token has ended."""
        if self.tokens is None or self.sessions.is_over(session):
            return None
        token = self.tokens.get(session.name, session.proof)
        return token.identity if token else None
