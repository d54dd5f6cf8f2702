"""What a browser keeps: a signed cookie that says who it is, and the token that each of its changes must carry."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from dataclasses import dataclass

COOKIE = "aioqless"
LASTS = 12 * 3600.0  # seconds after which one must log in again
MOST_ENDED = 10_000


@dataclass(frozen=True)
class Session:
    """One browser: a number nobody can guess, who logged in, if anybody did, and when it began (seconds since 1970)."""

    nonce: str
    name: str
    began: float


class Sessions:
    """Owns the secret, and which sessions were ended before their time."""

    def __init__(self, secret: str | None = None) -> None:
        if secret is not None and len(secret) < 16:
            raise ValueError("the secret that signs sessions must have 16 characters at least")
        self._key = hashlib.sha256((secret or secrets.token_hex(32)).encode()).digest()
        self._ended: dict[str, float] = {}

    def begin(self, name: str = "") -> Session:
        """A new browser, or one whose user has just logged in: a number that was known before is never taken over."""
        return Session(secrets.token_urlsafe(18), name, time.time())

    def cookie(self, session: Session) -> str:
        """What the browser keeps of it."""
        said = base64.urlsafe_b64encode(json.dumps([session.nonce, session.name, round(session.began)]).encode()).decode().rstrip("=")
        return f"{said}.{self._signed('session', said)}"

    def read(self, cookie: str | None) -> Session | None:
        """The session of a cookie; None for one that isn't ours, too old or ended."""
        said, _, signature = (cookie or "").partition(".")
        if not said or not hmac.compare_digest(self._signed("session", said).encode(), signature.encode("utf-8", "replace")):
            return None
        nonce, name, began = json.loads(base64.urlsafe_b64decode(said + "=" * (-len(said) % 4)))
        return None if nonce in self._ended or not 0 <= time.time() + 1 - began < LASTS else Session(nonce, name, began)

    def end(self, session: Session) -> None:
        """Let nobody come back with its cookie."""
        now = time.time()
        if len(self._ended) >= MOST_ENDED:
            self._ended = {nonce: until for nonce, until in self._ended.items() if until > now}
        self._ended[session.nonce] = now + LASTS

    def still(self, session: Session) -> bool:
        """Whether nobody ended it."""
        return session.nonce not in self._ended

    def token(self, session: Session) -> str:
        """What this browser's forms carry, and no other's."""
        return self._signed("token", f"{session.nonce}:{session.name}")

    def is_token(self, session: Session, token: str) -> bool:
        return hmac.compare_digest(self.token(session).encode(), token.encode("utf-8", "replace"))

    def _signed(self, what: str, text: str) -> str:
        return hmac.new(self._key, f"{what}:{text}".encode(), hashlib.sha256).hexdigest()
