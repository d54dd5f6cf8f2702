"""Tokens: secrets that say who their holder is. Only their hashes are kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import msgspec
from itsdangerous import BadData, URLSafeSerializer
from starlette.requests import Request

from aioqless.contrib.http.identity import Identity, Role, parse_role
from aioqless.runtime.log import log

MIN_LENGTH = 32
MAX_LIFETIME = 86_400  # seconds
MAX_JIDS = 100  # of a browser's token, which is sent with each request
LOCAL = "local"  # the name of the user with the start-up token
SHA256 = "sha256:"
_NAME = re.compile(r"[A-Za-z0-9_]{1,32}")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Token:
    """A token: its holder sends the secret, and is then known by the token's name.

    Attributes:
        name: Name, of letters, digits and `_`: jids of its jobs begin with it.
        secret: At least 32 characters, or `sha256:` and the hash of the secret in hexadecimal
            digits. Of several, all are valid.
        role: Role in the dashboard.
        may_put: Klasses that it may put by the HTTP API, as patterns such as `app.jobs.*`.
        may_read: Klasses of which it sees all jobs in the HTTP API, also those of others.
        may_reserve: Task queues in which it may reserve jobs.

    Raises:
        ValueError: The name or a secret is refused.
    """

    name: str
    secret: str | Sequence[str] = field(repr=False)
    role: Role = Role.NONE
    may_put: Sequence[str] = ()
    may_read: Sequence[str] = ()
    may_reserve: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"a token's name must be 1 to 32 letters, digits and '_' (got {self.name!r}): "
                "jids begin with it"
            )
        given = [self.secret] if isinstance(self.secret, str) else list(self.secret)
        if not given or any(len(each) < MIN_LENGTH for each in given):
            raise ValueError(
                f"each secret of token {self.name} must have at least {MIN_LENGTH} characters: "
                "`aioqless token` makes a good one"
            )
        for what in ("may_put", "may_read", "may_reserve"):
            if isinstance(patterns := getattr(self, what), str):
                raise ValueError(f"{what} of token {self.name} must be a list (got {patterns!r})")
        hashed = tuple(each if _HASH.fullmatch(each) else hash_secret(each) for each in given)
        object.__setattr__(self, "secret", hashed)

    @property
    def hashes(self) -> Sequence[str]:
        """The hashes of its secrets."""
        return self.secret

    @property
    def identity(self) -> Identity:
        """Who its holder is."""
        return Identity(self.name, self.role, self.may_put, self.may_read, self.may_reserve)

    def issue(
        self,
        secret: str,
        *,
        may_put: Iterable[str] = (),
        jids: Iterable[str] = (),
        seconds: float = 600,
    ) -> str:
        """Return a token for a browser, which ends by itself.

        It is signed, and stored nowhere: it ends sooner if this token is removed.

        Args:
            secret: The `secret` of `create_api`, the first of several.
            may_put: Klasses that the new token may put, a part of this token's. It sees and changes
                the jobs that it puts itself.
            jids: Jobs that it sees.
            seconds: Seconds until it ends, at most a day.

        Raises:
            ValueError: The time is out of range, or there are more than 100 jids.
        """
        claims = _Claims(
            secrets.token_urlsafe(9),
            time.time() + seconds,
            tuple(may_put),
            tuple(jids),
            proof_of(self.hashes[0]),
        )
        if not 0 < seconds <= MAX_LIFETIME:
            raise ValueError(f"seconds must be more than 0, at most {MAX_LIFETIME} (got {seconds})")
        if len(claims.jids) > MAX_JIDS:
            raise ValueError(f"jids must be at most {MAX_JIDS} (got {len(claims.jids)})")
        return f"{self.name}.{_serializer(self.name, [secret]).dumps(msgspec.to_builtins(claims))}"


class _Claims(msgspec.Struct, array_like=True, frozen=True):
    """What a browser's token says, besides the name of the token that issued it."""

    nonce: str  # is part of the jids that are put with it
    expires: float
    may_put: tuple[str, ...]
    jids: tuple[str, ...]
    proof: str


class Tokens:
    """Identifies the holders of tokens: `Authorization: Bearer <secret>`.

    Args:
        tokens: The tokens.
        local: Whether only requests of this machine are admitted.

    Raises:
        ValueError: There are none, or two have one name or one secret.
    """

    def __init__(self, tokens: Iterable[Token], *, local: bool = False) -> None:
        self.local = local
        self._by_name: dict[str, Token] = {}
        self._by_hash: list[tuple[str, Token]] = []
        for token in tokens:
            if self._by_name.setdefault(token.name, token) is not token:
                raise ValueError(f"two tokens have the name {token.name}")
            self._by_hash += [(each, token) for each in token.hashes]
        if not self._by_name:
            raise ValueError("tokens must not be empty: each request needs one")
        if len(dict(self._by_hash)) < len(self._by_hash):
            raise ValueError("two tokens have the same secret")

    @classmethod
    def at_startup(cls, secret: str | None = None) -> Self:
        """Return the token of a start-up link: its holder, on this machine, may do everything.

        Without a secret, a new one is made and logged.
        """
        if secret is None:
            secret = make_secret()
            log.warning(
                "web.token_created",
                link=f"/?token={secret}",
                why="without identify, only who has this token gets in",
            )
        every = ("*",)
        return cls([Token(LOCAL, secret, Role.ADMIN, every, every, every)], local=True)

    def __call__(self, request: Request) -> Identity | None:
        """Return whose token the Authorization header has."""
        found = self.find(bearer_of(request) or "")
        return found[0].identity if found else None

    def __iter__(self) -> Iterator[Token]:
        """Return the tokens."""
        return iter(self._by_name.values())

    def find(self, secret: str) -> tuple[Token, str] | None:
        """Return the token with a secret, and the proof that it had it."""
        sent, found = hash_secret(secret), None
        for each, token in self._by_hash:  # all of them, in constant time
            if hmac.compare_digest(sent, each):
                found = token, proof_of(each)
        return found

    def get(self, name: str, proof: str) -> Token | None:
        """Return the token of a name, if it still has the secret of a proof."""
        token = self._by_name.get(name)
        if token is None or proof not in map(proof_of, token.hashes):
            return None
        return token

    def read_issued(self, text: str, keys: Sequence[str]) -> Identity | None:
        """Return who a browser is by a token that one of these has issued, unless it has ended.

        Args:
            text: What the browser has sent.
            keys: Secrets of the application, any of which may have signed it.
        """
        name, _, signed = text.partition(".")
        try:
            claims = msgspec.convert(_serializer(name, keys).loads(signed), _Claims)
        except (BadData, ValueError):
            return None
        issuer = self.get(name, claims.proof)
        if issuer is None or time.time() >= claims.expires:
            return None
        return Identity(
            f"{name}.{claims.nonce}",
            may_put=claims.may_put,
            jids=claims.jids,
            issuer=issuer.identity,
        )


def bearer_of(request: Request) -> str | None:
    """Return the token in the Authorization header, if it has one."""
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    return text.strip() if kind.lower() == "bearer" else None


def make_secret() -> str:
    """Return a new secret."""
    return secrets.token_urlsafe(32)


def hash_secret(secret: str) -> str:
    """Return the hash of a secret. It needs no salt: a secret is no password that others have."""
    return SHA256 + hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def proof_of(hashed: str) -> str:
    """Return what stands for the hash of a secret in cookies, which must not reveal it."""
    return hashlib.sha256(f"proof {hashed}".encode()).hexdigest()[:32]


def _serializer(name: str, keys: Sequence[str]) -> URLSafeSerializer:
    return URLSafeSerializer(
        list(keys[::-1]),
        salt=f"aioqless token {name}",
        signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
    )


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    secret: str | list[str]
    role: str = "none"
    may_put: list[str] = []
    may_read: list[str] = []
    may_reserve: list[str] = []


def read_tokens(text: str, source: str) -> list[Token]:
    """Return the tokens of a TOML text, each of which is a table with the hash of its secret.

    Raises:
        ValueError: It is something else, or there are none; the message names the source.
    """
    tokens = []
    try:
        for name, each in msgspec.convert(tomllib.loads(text), dict[str, _Settings]).items():
            given = [each.secret] if isinstance(each.secret, str) else each.secret
            if not all(map(_HASH.fullmatch, given)):
                raise ValueError(
                    f"the secret of {name} must be its hash, as `aioqless token {name}` prints it"
                )
            tokens.append(
                Token(
                    name, given, parse_role(each.role), each.may_put, each.may_read,
                    each.may_reserve,
                )
            )  # fmt: skip
    except ValueError as wrong:  # also what tomllib and msgspec raise
        raise ValueError(f"{source}: {wrong}") from None
    if not tokens:
        raise ValueError(f"{source} must have a token: `aioqless token NAME` makes one")
    return tokens
