"""Browser sessions: a signed cookie, a CSRF token, and a record in Redis after a login."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from itsdangerous import BadData, Signer, URLSafeSerializer

from aioqless.client import REDIS_UNAVAILABLE, Client
from aioqless.contrib.http.bounded_dict import BoundedDict
from aioqless.contrib.http.generated_commands import HttpCommands

MIN_SECRET_LENGTH = 16
CLOCK_SKEW = 60  # seconds by which another process' clock may be ahead
RECHECK_INTERVAL = 5.0  # seconds for which an open stream trusts the last check of its session
MAX_CACHED = 1000
_HMAC = {"key_derivation": "hmac", "digest_method": hashlib.sha256}


@dataclass(frozen=True)
class Session:
    """A browser: an unguessable number, its user, and when the session began.

    `name` is empty before a login; `began` is in seconds since 1970.
    """

    nonce: str
    name: str
    began: int


class Sessions:
    """Owns the keys that sign cookies, and a cache of the records of open sessions.

    The keys are not in Redis, so that write access to Redis is no way to log in. The record of an
    open session is, so that a logout ends the session in every process. The record is bound to a
    proof, such as the hash of the user's password: a changed password ends the session. The
    cookie's name is part of what is signed, so that a signature for one purpose is of no use for
    another.

    Args:
        client: Keeps the records.
        cookie: The cookie's name.
        lifetime: Seconds after which a session ends.
        secret: Signs cookies; the first of several signs, and all of them verify, so that keys can
            be rotated. Default: a random key that ends with the process.

    Raises:
        ValueError: A secret has less than 16 characters.
    """

    def __init__(
        self, client: Client, cookie: str, lifetime: int, secret: str | Sequence[str] | None = None
    ) -> None:
        keys = [secret] if isinstance(secret, str) else list(secret or [secrets.token_hex(32)])
        if any(len(key) < MIN_SECRET_LENGTH for key in keys):
            raise ValueError(
                "each secret that signs sessions must have at least "
                f"{MIN_SECRET_LENGTH} characters: `secrets.token_hex(32)` makes a good one"
            )
        self.lifetime = lifetime
        self._client = client
        self._cookie = cookie
        self._cookies = URLSafeSerializer(keys[::-1], salt=f"{cookie} session", signer_kwargs=_HMAC)
        self._tokens = Signer(
            keys[::-1], salt=f"{cookie} token", key_derivation="hmac", digest_method=hashlib.sha256
        )
        # by the record's id: its proof, and when Redis confirmed it
        self._confirmed = BoundedDict[str, tuple[str, float]](MAX_CACHED)
        self._checking = asyncio.Lock()

    def begin(self, name: str = "") -> Session:
        """Return a new session without a record."""
        return Session(secrets.token_urlsafe(18), name, int(time.time()))

    async def open(self, name: str, proof: str) -> Session:
        """Return a new session of a user, and record it.

        It never takes over the nonce from before the login, which others may know.
        """
        session = self.begin(name)
        await self._commands.session_keep(
            id=self._id(session), proof=digest(proof), seconds=self.lifetime
        )
        return session

    async def is_open(self, session: Session, proof: str) -> bool:
        """Return whether the session has a record with this proof.

        While Redis is unavailable, its last answer counts: no page shows anything without Redis.
        """
        id_, expected = self._id(session), digest(proof)
        try:
            (found,) = await self._commands.session_read(ids=[id_])
        except REDIS_UNAVAILABLE:
            if self._confirmed.get(id_, ("", 0.0))[0] == expected:
                return True
            raise
        self._remember(id_, expected if found == expected else None)
        return bool(found == expected)

    async def is_still_open(self, session: Session, proof: str) -> bool:
        """Return the same for an open stream, at most `RECHECK_INTERVAL` seconds late.

        All sessions are looked up in one call.
        """
        id_, expected = self._id(session), digest(proof)
        async with self._checking:
            if self._confirmed.get(id_, ("", 0.0))[1] < time.monotonic() - RECHECK_INTERVAL:
                if id_ not in self._confirmed:
                    self._confirmed[id_] = expected, 0.0
                proofs = {each: proof for each, (proof, _) in self._confirmed.items()}
                try:
                    found = await self._commands.session_read(ids=list(proofs))
                except REDIS_UNAVAILABLE:
                    return True  # the page shows the outage
                for (each, proof_), current in zip(proofs.items(), found, strict=True):
                    self._remember(each, proof_ if current == proof_ else None)
        return self._confirmed.get(id_, ("", 0.0))[0] == expected

    async def end(self, session: Session) -> None:
        """Delete the record: the cookie opens nothing any more, in any process."""
        await self._commands.session_drop(id=self._id(session))
        self._confirmed.pop(self._id(session), None)

    def cookie(self, session: Session) -> str:
        """Return the cookie of a session, for `read`."""
        return str(self._cookies.dumps([session.nonce, session.name, session.began]))

    def read(self, cookie: str | None) -> Session | None:
        """Return the session of a cookie; None for one that is not ours or too old.

        It may have been ended: see `is_open`.
        """
        try:
            session = Session(
                *msgspec.convert(self._cookies.loads(cookie or ""), tuple[str, str, int])
            )
        except (BadData, ValueError):
            return None
        return session if -CLOCK_SKEW <= time.time() - session.began < self.lifetime else None

    def token(self, session: Session) -> str:
        """Return the CSRF token of a browser."""
        return self._tokens.get_signature(self._signed_text(session)).decode()

    def is_token(self, session: Session, token: str) -> bool:
        """Return whether a CSRF token is this browser's."""
        return token.isascii() and self._tokens.verify_signature(self._signed_text(session), token)

    def sign(self, text: str) -> str:
        """Return what differs for any other string, and reveals nothing about this one."""
        return self._tokens.get_signature(f"text {digest(text)}".encode()).decode()

    @property
    def _commands(self) -> HttpCommands:
        return HttpCommands(self._client.internals.store)

    def _signed_text(self, session: Session) -> bytes:
        return f"{session.nonce} {session.name}".encode("utf-8", "replace")

    def _id(self, session: Session) -> str:
        return digest(f"{self._cookie} {session.nonce}")

    def _remember(self, id_: str, proof: str | None) -> None:
        if proof is None:
            self._confirmed.pop(id_, None)
        else:
            self._confirmed[id_] = proof, time.monotonic()


def digest(text: str) -> str:
    """Return a digest that stands for a string in Redis, where many may read."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
