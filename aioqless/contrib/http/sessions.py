"""Sessions of browsers: a signed cookie and a CSRF token."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from itsdangerous import BadData, Signer, URLSafeSerializer
from starlette.requests import Request

from aioqless.contrib.http.bounded_dict import BoundedDict

MIN_SECRET_LENGTH = 16
CLOCK_SKEW = 60  # seconds by which another process' clock may be ahead
MAX_ENDED = 10_000
_HMAC = {"key_derivation": "hmac", "digest_method": hashlib.sha256}


@dataclass(frozen=True)
class Session:
    """A browser: an unguessable number, its user, and when the session began.

    `name` is empty before a browser has signed in; `proof` stands for the secret of the token that
    it traded; `began` is in seconds since 1970.
    """

    nonce: str
    name: str
    proof: str
    began: int


class Sessions:
    """Owns the keys that sign cookies, and the sessions that were ended in this process.

    Nothing is stored: a session ends after its lifetime, with the token that was traded for it,
    and in this process when its user signs out. The cookie's name is part of what is signed, so
    that a signature for one purpose is of no use for another.

    Args:
        cookie: The cookie's name.
        lifetime: Seconds after which a session ends.
        same_site: `Lax`, or `Strict` if no link of another site leads to a page.
        secret: Signs cookies; the first of several signs, and all of them verify, so that keys can
            be rotated. Default: a random key that ends with the process.

    Raises:
        ValueError: A secret has less than 16 characters.
    """

    def __init__(
        self, cookie: str, lifetime: int, same_site: str, secret: str | Sequence[str] | None = None
    ) -> None:
        keys = [secret] if isinstance(secret, str) else list(secret or [secrets.token_hex(32)])
        if any(len(key) < MIN_SECRET_LENGTH for key in keys):
            raise ValueError(
                "each secret that signs sessions must have at least "
                f"{MIN_SECRET_LENGTH} characters: `secrets.token_hex(32)` makes a good one"
            )
        self.keys = keys
        self._lifetime = lifetime
        self._cookie = cookie
        self._same_site = same_site
        self._cookies = URLSafeSerializer(keys[::-1], salt=f"{cookie} session", signer_kwargs=_HMAC)
        self._tokens = Signer(
            keys[::-1], salt=f"{cookie} token", key_derivation="hmac", digest_method=hashlib.sha256
        )
        self._ended = BoundedDict[str, None](MAX_ENDED)

    def begin(self, name: str = "", proof: str = "") -> Session:
        """Return a new session.

        It never takes over the nonce from before a browser signed in, which others may know.
        """
        return Session(secrets.token_urlsafe(18), name, proof, int(time.time()))

    def end(self, session: Session) -> None:
        """Let the cookie open nothing any more in this process."""
        self._ended[session.nonce] = None

    def is_over(self, session: Session) -> bool:
        """Return whether a session has ended or is too old."""
        age = time.time() - session.began
        return session.nonce in self._ended or not -CLOCK_SKEW <= age < self._lifetime

    def read(self, request: Request) -> Session | None:
        """Return the session of a request's cookie, if it is ours and not over."""
        try:
            values = self._cookies.loads(request.cookies.get(self._name(request), ""))
            session = Session(*msgspec.convert(values, tuple[str, str, str, int]))
        except (BadData, ValueError):
            return None
        return None if self.is_over(session) else session

    def cookie(self, session: Session | None, request: Request) -> str:
        """Return a Set-Cookie header for this application alone, out of reach of scripts.

        Without a session it deletes the cookie.
        """
        value, lifetime = "", 0
        if session:
            values = [session.nonce, session.name, session.proof, session.began]
            value, lifetime = str(self._cookies.dumps(values)), self._lifetime
        parts = [
            f"{self._name(request)}={value}",
            f"Path={request.scope.get('root_path', '') or '/'}",
            f"Max-Age={lifetime}",
            "HttpOnly",
            f"SameSite={self._same_site}",
        ]
        return "; ".join([*parts, "Secure"] if request.url.scheme == "https" else parts)

    def token(self, session: Session) -> str:
        """Return the CSRF token of a browser."""
        return self._tokens.get_signature(self._signed_text(session)).decode()

    def is_token(self, session: Session, token: str) -> bool:
        """Return whether a CSRF token is this browser's."""
        return token.isascii() and self._tokens.verify_signature(self._signed_text(session), token)

    def sign(self, text: str) -> str:
        """Return what differs for any other string, and reveals nothing about this one."""
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return self._tokens.get_signature(f"text {digest}".encode()).decode()

    def _name(self, request: Request) -> str:
        """Return the cookie's name with the port.

        A cookie is sent to all ports of a host; applications there must not end each other's
        sessions.
        """
        port = request.headers.get("host", "").rpartition(":")[2]
        return f"{self._cookie}-{port}" if port.isascii() and port.isdigit() else self._cookie

    def _signed_text(self, session: Session) -> bytes:
        return f"{session.nonce} {session.name}".encode("utf-8", "replace")
