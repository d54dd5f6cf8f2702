"""What a browser keeps: a signed cookie that says who uses it; and the token that each of its changes carries."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass

import msgspec

MOST_ENDED = 10_000
SHORTEST_SECRET = 16
AHEAD = 60  # seconds by which another process' clock may be ahead


@dataclass(frozen=True)
class Session:
    """One browser: a number nobody can guess, the name of who uses it, if that is known, and when it began (seconds since 1970)."""

    nonce: str
    name: str
    began: int


class Sessions:
    """Owns the secret by which the cookies of one name are known as ours, and which sessions were ended before their time.

    Processes that share a secret know each other's sessions. A cookie's name is part of what is signed: what signs for one purpose is of
    no use for another.
    """

    def __init__(self, cookie: str, lasts: int, secret: str | None = None) -> None:
        if secret is not None and len(secret) < SHORTEST_SECRET:
            raise ValueError(
                f"the secret that signs sessions must have at least {SHORTEST_SECRET} characters: `secrets.token_hex(32)` makes a good one"
            )
        self.lasts = lasts
        self._name = cookie
        self._key = hashlib.sha256((secret or secrets.token_hex(32)).encode()).digest()
        self._ended: dict[str, float] = {}

    def begin(self, name: str = "") -> Session:
        """A new one: a number that was known before is never taken over."""
        return Session(secrets.token_urlsafe(18), name, int(time.time()))

    def cookie(self, session: Session) -> str:
        """The text by which `read` knows it again."""
        said = base64.urlsafe_b64encode(msgspec.json.encode((session.nonce, session.name, session.began))).decode().rstrip("=")
        return f"{said}.{self._signed('session', said)}"

    def read(self, cookie: str | None) -> Session | None:
        """The session of a cookie; None for one that isn't ours, is too old, or has ended."""
        said, _, signature = (cookie or "").partition(".")
        if not _same(self._signed("session", said), signature):
            return None
        try:
            session = Session(*msgspec.json.decode(base64.urlsafe_b64decode(said + "=" * (-len(said) % 4)), type=tuple[str, str, int]))
        except (binascii.Error, ValueError):
            return None
        return session if self.still(session) and -AHEAD <= time.time() - session.began < self.lasts else None

    def end(self, session: Session) -> None:
        """Let nobody come back with its cookie."""
        now = time.time()
        if len(self._ended) >= MOST_ENDED:
            self._ended = {nonce: until for nonce, until in self._ended.items() if until > now}
        self._ended[session.nonce] = session.began + self.lasts

    def still(self, session: Session) -> bool:
        """Whether nobody ended it."""
        return session.nonce not in self._ended

    def token(self, session: Session) -> str:
        """What this browser's changes carry, and no other's."""
        return self._signed("token", f"{session.nonce} {session.name}")

    def is_token(self, session: Session, token: str) -> bool:
        return _same(self.token(session), token)

    def _signed(self, what: str, text: str) -> str:
        return hmac.new(self._key, f"{self._name} {what} {text}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode("utf-8", "replace"))
