"""Sessions of browsers: a signed cookie, the token of its changes, and a record in Redis for those
who logged in."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from itsdangerous import BadData, Signer, URLSafeSerializer

from aioqless.client import Client
from aioqless.redis.connection import AWAY

SHORTEST_SECRET = 16
AHEAD = 60  # seconds by which another process' clock may be ahead
RECHECK = 5.0  # seconds for which an open stream trusts what Redis said of its session
MOST_REMEMBERED = 1000
_HMAC = {"key_derivation": "hmac", "digest_method": hashlib.sha256}


@dataclass(frozen=True)
class Session:
    """One browser: a number that can't be guessed, the name of its user (empty before login), and
    when it began (seconds since 1970)."""

    nonce: str
    name: str
    began: int


class Sessions:
    """Owns the keys that sign cookies, and what Redis said last of open sessions.

    The keys are not in Redis, so write access to Redis is no way to log in. The record of an open
    session is, so that logging out ends it in every process and for good. The record is bound to a
    proof, such as the hash of the user's password: with another password the session is over. A
    cookie's name is part of what is signed, so a signature for one purpose is of no use for
    another.

    Args:
        client: Keeps the records.
        cookie: The cookie's name.
        lasts: Seconds after which a session ends.
        secret: What signs; the first of several signs, and all of them verify, so keys can be rotated. Without one, a random key that
            ends with the process.

    Raises:
        ValueError: A secret has less than 16 characters.
    """

    def __init__(
        self, client: Client, cookie: str, lasts: int, secret: str | Sequence[str] | None = None
    ) -> None:
        keys = [secret] if isinstance(secret, str) else list(secret or [secrets.token_hex(32)])
        if any(len(key) < SHORTEST_SECRET for key in keys):
            raise ValueError(
                f"each secret that signs sessions must have at least {SHORTEST_SECRET} characters: `secrets.token_hex(32)` makes a good one"
            )
        self.lasts = lasts
        self._client = client
        self._cookie = cookie
        self._cookies = URLSafeSerializer(keys[::-1], salt=f"{cookie} session", signer_kwargs=_HMAC)
        self._tokens = Signer(
            keys[::-1], salt=f"{cookie} token", key_derivation="hmac", digest_method=hashlib.sha256
        )
        self._confirmed: OrderedDict[str, tuple[str, float]] = (
            OrderedDict()
        )  # by the record's id: its proof, and when Redis said so
        self._checking = asyncio.Lock()

    def begin(self, name: str = "") -> Session:
        """Return a new session without a record."""
        return Session(secrets.token_urlsafe(18), name, int(time.time()))

    async def open(self, name: str, proof: str) -> Session:
        """Return a new session of a user, and record it: a number that was known before login is
        never taken over."""
        session = self.begin(name)
        await self._client.store.session_keep(
            id=self._id(session), proof=digest(proof), seconds=self.lasts
        )
        return session

    async def is_open(self, session: Session, proof: str) -> bool:
        """Whether the session has a record with this proof. While Redis is away, its last answer
        counts: nothing is shown without it."""
        id_, expected = self._id(session), digest(proof)
        try:
            (found,) = await self._client.store.session_read(ids=[id_])
        except AWAY:
            if self._confirmed.get(id_, ("", 0.0))[0] == expected:
                return True
            raise
        self._remember(id_, expected if found == expected else None)
        return bool(found == expected)

    async def is_still_open(self, session: Session, proof: str) -> bool:
        """The same for open streams, at most `RECHECK` seconds late: all sessions are looked up in
        one call."""
        id_, expected = self._id(session), digest(proof)
        async with self._checking:
            if self._confirmed.get(id_, ("", 0.0))[1] < time.monotonic() - RECHECK:
                self._confirmed.setdefault(id_, (expected, 0.0))
                proofs = {each: proof for each, (proof, _) in self._confirmed.items()}
                try:
                    found = await self._client.store.session_read(ids=list(proofs))
                except AWAY:
                    return True  # the page says so
                for (each, proof_), there in zip(proofs.items(), found, strict=True):
                    self._remember(each, proof_ if there == proof_ else None)
        return self._confirmed.get(id_, ("", 0.0))[0] == expected

    async def end(self, session: Session) -> None:
        """Delete the record: the cookie opens nothing any more, in any process."""
        await self._client.store.session_drop(id=self._id(session))
        self._confirmed.pop(self._id(session), None)

    def cookie(self, session: Session) -> str:
        """Return the text by which `read` knows it again."""
        return str(self._cookies.dumps([session.nonce, session.name, session.began]))

    def read(self, cookie: str | None) -> Session | None:
        """Return the session of a cookie; None for one that isn't ours or is too old. Whether it is
        open, its record says."""
        try:
            session = Session(
                *msgspec.convert(self._cookies.loads(cookie or ""), tuple[str, str, int])
            )
        except (BadData, ValueError):
            return None
        return session if -AHEAD <= time.time() - session.began < self.lasts else None

    def token(self, session: Session) -> str:
        """Return what this browser's changes carry, and no other's."""
        return self._tokens.get_signature(self._named(session)).decode()

    def is_token(self, session: Session, token: str) -> bool:
        """Whether a token is this browser's."""
        return token.isascii() and self._tokens.verify_signature(self._named(session), token)

    def _named(self, session: Session) -> bytes:
        return f"{session.nonce} {session.name}".encode("utf-8", "replace")

    def _id(self, session: Session) -> str:
        return digest(f"{self._cookie} {session.nonce}")

    def _remember(self, id_: str, proof: str | None) -> None:
        self._confirmed.pop(id_, None)
        if proof is not None:
            self._confirmed[id_] = proof, time.monotonic()
        while len(self._confirmed) > MOST_REMEMBERED:
            self._confirmed.popitem(last=False)


def digest(text: str) -> str:
    """Return what stands for a text in Redis, where many may read."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
