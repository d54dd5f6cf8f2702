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

COOKIE = "aioqless-desk"
LASTS = 7 * 86_400  # seconds after which one must sign in again
MOST_ENDED = 10_000
SHORTEST_SECRET = 16


@dataclass(frozen=True)
class Session:
    """One browser of a person: a number nobody can guess, the person's name, and when it began (seconds since 1970)."""

    nonce: str
    name: str
    began: int

    def at(self, tab: str) -> str:
        """The part of a worker's name that stands for one tab of it, and from which neither can be told."""
        return hashlib.sha256(f"{self.nonce} {tab}".encode()).hexdigest()[:16]


class Sessions:
    """Owns the secret by which cookies and tokens are known as ours, and which sessions were ended before their time."""

    def __init__(self, secret: str | None) -> None:
        if secret is not None and len(secret) < SHORTEST_SECRET:
            raise ValueError(f"the secret must have at least {SHORTEST_SECRET} characters: `secrets.token_hex(32)` makes a good one")
        self._key = hashlib.sha256((secret or secrets.token_hex(32)).encode()).digest()
        self._ended: dict[str, float] = {}

    def begin(self, name: str) -> Session:
        return Session(secrets.token_urlsafe(18), name, int(time.time()))

    def cookie(self, session: Session) -> str:
        """The text by which `read` knows it again."""
        said = base64.urlsafe_b64encode(msgspec.json.encode((session.nonce, session.name, session.began))).decode().rstrip("=")
        return f"{said}.{self._signed(f'session {said}')}"

    def read(self, cookie: str | None) -> Session | None:
        """The session of a cookie; None for one that isn't ours, is too old, or has ended."""
        said, _, signature = (cookie or "").partition(".")
        if not _same(self._signed(f"session {said}"), signature):
            return None
        try:
            session = Session(*msgspec.json.decode(base64.urlsafe_b64decode(said + "=" * (-len(said) % 4)), type=tuple[str, str, int]))
        except (binascii.Error, ValueError):
            return None
        return None if session.nonce in self._ended or time.time() - session.began > LASTS else session

    def end(self, session: Session) -> None:
        """Let nobody come back with its cookie."""
        now = time.time()
        if len(self._ended) >= MOST_ENDED:
            self._ended = {nonce: until for nonce, until in self._ended.items() if until > now}
        self._ended[session.nonce] = session.began + LASTS

    def token(self, session: Session) -> str:
        return self._signed(f"token {session.nonce}")

    def is_token(self, session: Session, token: str) -> bool:
        return _same(self.token(session), token)

    def _signed(self, text: str) -> str:
        return hmac.new(self._key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode("utf-8", "replace"))
