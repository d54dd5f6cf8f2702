"""Tokens: who may put which jobs, and sees which."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import msgspec
from itsdangerous import BadData, URLSafeSerializer

from aioqless.contrib.http import digest
from aioqless.contrib.http.json_api import RequestRefused

MIN_SECRET_LENGTH = 32
MAX_LIFETIME = 86_400  # seconds
MAX_JIDS = 100  # of a browser's token, which is sent with each request
_NAME = re.compile(r"[A-Za-z0-9_]{1,32}")


class Claims(msgspec.Struct, array_like=True, frozen=True):
    """What a browser's token says, besides the name of the token that issued it."""

    nonce: str  # is part of the jids that are put with it
    expires: float
    may_put: tuple[str, ...]
    jids: tuple[str, ...]


@dataclass(frozen=True)
class Token:
    """A token of the HTTP API: what its holder may put, and sees.

    Its holder sees, retries, cancels and signals the jobs that were put with it: those whose jid
    begins with its name.

    Attributes:
        name: Name, of letters, digits and `_`: the beginning of the jids of its jobs.
        secret: At least 32 characters, which its holder sends. Of several, all are valid, and the
            first signs the tokens of browsers.
        may_put: Klasses that it may put, as patterns such as `app.jobs.*`.
        may_read: Klasses of which it sees all jobs, also those of other clients.

    Raises:
        ValueError: The name or a secret is refused.
    """

    name: str
    secret: str | Sequence[str] = field(repr=False)
    may_put: Sequence[str] = ()
    may_read: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"a token's name must be 1 to 32 letters, digits and '_' (got {self.name!r}): "
                "jids begin with it"
            )
        if not self.secrets or any(len(each) < MIN_SECRET_LENGTH for each in self.secrets):
            raise ValueError(
                f"each secret of token {self.name} must have at least {MIN_SECRET_LENGTH} "
                "characters: `secrets.token_hex(32)` makes a good one"
            )
        for what, klasses in (("may_put", self.may_put), ("may_read", self.may_read)):
            if isinstance(klasses, str):
                raise ValueError(f"{what} of token {self.name} must be a list (got {klasses!r})")

    @property
    def secrets(self) -> list[str]:
        """All of its secrets."""
        return [self.secret] if isinstance(self.secret, str) else list(self.secret)

    def issue(
        self, *, may_put: Iterable[str] = (), jids: Iterable[str] = (), seconds: float = 600
    ) -> str:
        """Return a token for a browser, which ends by itself.

        It is signed, and stored nowhere: only new secrets end it sooner.

        Args:
            may_put: Klasses that the new token may put, a part of this token's. It sees and changes
                the jobs that it puts itself.
            jids: Jobs that it sees.
            seconds: Seconds until it ends, at most a day.

        Raises:
            ValueError: The time is out of range, or there are more than 100 jids.
        """
        claims = Claims(
            secrets.token_urlsafe(9), time.time() + seconds, tuple(may_put), tuple(jids)
        )
        if not 0 < seconds <= MAX_LIFETIME:
            raise ValueError(f"seconds must be more than 0, at most {MAX_LIFETIME} (got {seconds})")
        if len(claims.jids) > MAX_JIDS:
            raise ValueError(f"jids must be at most {MAX_JIDS} (got {len(claims.jids)})")
        return f"{self.name}.{self._serializer.dumps(msgspec.to_builtins(claims))}"

    def read(self, text: str) -> Claims | None:
        """Return what a browser's token says; None if it isn't one, or has ended."""
        try:
            claims = msgspec.convert(self._serializer.loads(text), Claims)
        except (BadData, ValueError):
            return None
        return claims if time.time() < claims.expires else None

    @property
    def _serializer(self) -> URLSafeSerializer:
        return URLSafeSerializer(
            self.secrets[::-1],
            salt=f"aioqless api {self.name}",
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )


@dataclass(frozen=True)
class Grant:
    """What the sender of a request may do: a token, or a browser's token that it has issued."""

    token: Token
    claims: Claims | None = None

    @property
    def owner(self) -> str:
        """The beginning of the names of what is put, before a `-`."""
        return f"{self.token.name}.{self.claims.nonce}" if self.claims else self.token.name

    def owns(self, jid: str) -> bool:
        """Return whether a job was put with this token, or with one that it has issued."""
        return jid.startswith(
            f"{self.owner}-" if self.claims else (f"{self.owner}-", f"{self.owner}.")
        )

    def may_put(self, klass: str) -> bool:
        """Return whether it may put jobs of a klass."""
        return matches(klass, self.token.may_put) and (
            self.claims is None or matches(klass, self.claims.may_put)
        )

    def may_find(self, jid: str) -> bool:
        """Return whether it may see a job, depending on its klass unless it `owns` the job."""
        if self.owns(jid):
            return True
        return jid in self.claims.jids if self.claims else bool(self.token.may_read)

    def may_see(self, jid: str, klass: str) -> bool:
        """Return whether it sees a job."""
        if self.owns(jid) or self.claims:
            return self.may_find(jid)
        return matches(klass, self.token.may_read)


class Tokens:
    """Finds the token of a request.

    Raises:
        ValueError: There are none, or two have one name or one secret.
    """

    def __init__(self, tokens: Iterable[Token]) -> None:
        self._by_name: dict[str, Token] = {}
        self._digests: list[tuple[str, Token]] = []
        for token in tokens:
            if self._by_name.setdefault(token.name, token) is not token:
                raise ValueError(f"two tokens have the name {token.name}")
            self._digests += [(digest(each), token) for each in token.secrets]
        if not self._by_name:
            raise ValueError("tokens must not be empty: each request needs one")
        if len(dict(self._digests)) < len(self._digests):
            raise ValueError("two tokens have the same secret")

    def find(self, header: str) -> Grant:
        """Return what the sender of an Authorization header may do."""
        kind, _, text = header.partition(" ")
        found: Grant | None = None
        if kind.lower() == "bearer":
            sent = digest(text.strip())
            for each, token in self._digests:  # all of them, in constant time
                if hmac.compare_digest(sent, each):
                    found = Grant(token)
            name, _, signed = text.strip().partition(".")
            issuer = self._by_name.get(name)
            if found is None and issuer and (claims := issuer.read(signed)):
                found = Grant(issuer, claims)
        if found is None:
            why = "The token is missing, wrong or expired: send `Authorization: Bearer <token>`."
            raise RequestRefused(401, "token", why, headers={"WWW-Authenticate": "Bearer"})
        return found


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    secret: str | list[str]
    may_put: list[str] = []
    may_read: list[str] = []


def read_tokens(text: str, source: str) -> list[Token]:
    """Return the tokens of a TOML text, each of which is a table.

    Raises:
        ValueError: It is something else, or there are none; the message names the source.
    """
    try:
        settings = msgspec.convert(tomllib.loads(text), dict[str, _Settings])
        tokens = [Token(name, **msgspec.structs.asdict(each)) for name, each in settings.items()]
    except ValueError as wrong:  # also what tomllib and msgspec raise
        raise ValueError(f"{source}: {wrong}") from None
    if not tokens:
        raise ValueError(f"{source} must have a token: see docs/http-api.md")
    return tokens


def matches(klass: str, patterns: Iterable[str]) -> bool:
    """Return whether a klass fits one of the patterns."""
    return any(fnmatchcase(klass, each) for each in patterns)
