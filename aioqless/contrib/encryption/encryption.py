"""Data that only those who have a key can read, or write.

A sealed job's data are still JSON: `{"aioqless-sealed": "…"}`, encrypted, or `{"aioqless-signed":
"…", "data": …}`, readable by all and made by one who has a key. Each is bound to the klass of its
job: data that were put for one handler are refused by another. What handlers return is kept sealed
too, bound to its job: `{"aioqless-sealed": "…"}`, or `{"aioqless-signed": "…", "result": "its
JSON"}`."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Mapping
from typing import Any, Literal, Self

import msgspec

from aioqless.client import json_data
from aioqless.errors import BrokenSeal, require_extra

KEY = 32  # bytes
ENCRYPTED, SIGNED, RESULT = "aioqless-sealed", "aioqless-signed", "result"


class _Encrypted(msgspec.Struct, forbid_unknown_fields=True):
    token: str = msgspec.field(name=ENCRYPTED)


class _Signed(msgspec.Struct, forbid_unknown_fields=True):
    mac: str = msgspec.field(name=SIGNED)
    data: msgspec.Raw


class Seal:
    """Seals the data that a client puts, and opens those it reads: `Client(url, seal=Seal(new_key,
    old_key))`.

    The first key seals, all of them open: to rotate, give the new one in front, and take the old
    one away when no job is left that was sealed with it. `mode`: `encrypt`, or `sign`. With
    `required`, data that nobody has sealed are refused, else they are read as they are. Raises
    ValueError for keys that `Seal.new_key` can't have made, and AioqlessError without the library
    that encrypts."""

    def __init__(
        self, *keys: str, mode: Literal["encrypt", "sign"] = "encrypt", required: bool = False
    ) -> None:
        if mode not in ("encrypt", "sign"):
            raise ValueError(f"mode must be 'encrypt' or 'sign', not {mode!r}")
        if not keys:
            raise ValueError("a seal needs a key; Seal.new_key() makes one")
        self.mode = mode
        self.required = required
        self._keys = [_key(number, key) for number, key in enumerate(keys, 1)]
        self._fernet: Any = _fernet(keys)

    @staticmethod
    def new_key() -> str:
        """A key, for a secret store."""
        return base64.urlsafe_b64encode(os.urandom(KEY)).decode()

    @classmethod
    def of_environment(cls, variables: Mapping[str, str] = os.environ) -> Self | None:
        """What AIOQLESS_SEAL_KEYS (separated by commas), AIOQLESS_SEAL (encrypt, sign) and
        AIOQLESS_SEAL_REQUIRED (1) say; None without keys."""
        keys = [
            key.strip() for key in variables.get("AIOQLESS_SEAL_KEYS", "").split(",") if key.strip()
        ]
        mode: Any = variables.get("AIOQLESS_SEAL") or "encrypt"
        return (
            cls(*keys, mode=mode, required=variables.get("AIOQLESS_SEAL_REQUIRED") == "1")
            if keys
            else None
        )

    def close(self, text: bytes, klass: str) -> bytes:
        """The data of a job of this klass as they are stored."""
        if self.mode == "encrypt":
            return msgspec.json.encode(
                _Encrypted(self._fernet.encrypt(_bound(klass, text)).decode())
            )
        return msgspec.json.encode(_Signed(_mac(self._keys[0], klass, text), msgspec.Raw(text)))

    def close_result(self, text: bytes, jid: str) -> bytes:
        """What a job's handler returned as it is kept: bound to the job, and never to be taken for
        data."""
        if self.mode == "encrypt":
            return self.close(text, _result_of(jid))
        return msgspec.json.encode(
            {SIGNED: _mac(self._keys[0], _result_of(jid), text), RESULT: text.decode()}
        )

    def decrypted(self, token: str, klass: str) -> bytes:
        """What was encrypted for this klass. Raises BrokenSeal."""
        from cryptography.fernet import InvalidToken

        try:
            text: bytes = self._fernet.decrypt(token.encode())
        except (InvalidToken, ValueError):
            raise BrokenSeal(
                "its data are encrypted with a key that isn't here, or were changed"
            ) from None
        prefix = _bound(klass, b"")
        if not text.startswith(prefix):
            raise BrokenSeal(f"its data were encrypted for another klass than {klass}")
        return text[len(prefix) :]

    def verified(self, mac: str, text: bytes, klass: str) -> bytes:
        """Data that were signed for this klass. Raises BrokenSeal."""
        if not any(
            hmac.compare_digest(_mac(key, klass, text).encode(), mac.encode()) for key in self._keys
        ):
            raise BrokenSeal(
                f"its data are signed with a key that isn't here or for another klass than {klass}, or were changed"
            )
        return text

    def __repr__(self) -> str:
        return f"<Seal mode={self.mode!r} keys={len(self._keys)} required={self.required}>"


def opened(seal: Seal | None, text: str, klass: str) -> str:
    """A job's data as they were put. Raises BrokenSeal where they can't be trusted, or not be
    read."""
    envelope = _envelope(text)
    if envelope is None:
        if seal is not None and seal.required:
            raise BrokenSeal("its data are not sealed, and this client takes none that aren't")
        return text
    if seal is None:
        raise BrokenSeal(
            "its data are sealed, and this client has no key: Client(..., seal=Seal(key)) or AIOQLESS_SEAL_KEYS"
        )
    if isinstance(envelope, _Encrypted):
        return seal.decrypted(envelope.token, klass).decode("utf-8", "surrogateescape")
    return seal.verified(envelope.mac, bytes(envelope.data), klass).decode(
        "utf-8", "surrogateescape"
    )


def opened_result(seal: Seal | None, value: Any, jid: str) -> Any:
    """What a job's handler returned, of what is kept of it. Raises BrokenSeal where it can't be
    trusted, or not be read."""
    keys = (
        set(value)
        if isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
        else set()
    )
    if keys not in ({ENCRYPTED}, {SIGNED, RESULT}):
        if seal is not None and seal.required:
            raise BrokenSeal(
                f"the result of job {jid} is not sealed, and this client takes none that aren't"
            )
        return value
    if seal is None:
        raise BrokenSeal(
            f"the result of job {jid} is sealed, and this client has no key: Client(seal=Seal(key)) or AIOQLESS_SEAL_KEYS"
        )
    bound = _result_of(jid)
    try:
        if ENCRYPTED in keys:
            return json_data.decoded(seal.decrypted(value[ENCRYPTED], bound).decode())
        return json_data.decoded(
            seal.verified(
                value[SIGNED], value[RESULT].encode("utf-8", "surrogatepass"), bound
            ).decode()
        )
    except BrokenSeal:
        raise BrokenSeal(
            f"the result of job {jid} is sealed with a key that isn't here or as another job's, or was changed"
        ) from None


def _envelope(text: str) -> _Encrypted | _Signed | None:
    kinds: dict[str, type[_Encrypted | _Signed]] = {ENCRYPTED: _Encrypted, SIGNED: _Signed}
    for mark, kind in kinds.items():
        if f'"{mark}"' in text:
            try:
                return msgspec.json.decode(text.encode("utf-8", "surrogateescape"), type=kind)
            except msgspec.MsgspecError:  # somebody's data that only look like it
                continue
    return None


def _result_of(jid: str) -> str:
    return f"{jid}\0{RESULT}"  # as no klass can be called


def _bound(klass: str, text: bytes) -> bytes:
    return klass.encode("utf-8", "surrogateescape") + b"\0" + text


def _mac(key: bytes, klass: str, text: bytes) -> str:
    return hmac.new(key, b"aioqless data of " + _bound(klass, text), hashlib.sha256).hexdigest()


def _key(number: int, key: str) -> bytes:
    try:
        made = base64.b64decode(key.encode(), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        made = b""
    if len(made) != KEY:  # which isn't shown
        raise ValueError(
            f"key {number} of the seal is not {KEY} bytes in URL-safe base64; Seal.new_key() makes one"
        )
    return made


def _fernet(keys: tuple[str, ...]) -> Any:
    with require_extra("encryption"):
        from cryptography.fernet import Fernet, MultiFernet

    return MultiFernet([Fernet(key) for key in keys])
