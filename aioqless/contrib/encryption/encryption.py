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
from aioqless.client.codec import (
    ENCRYPTED,
    RESULT,
    SIGNED,
    EncryptedData,
    SignedData,
    envelope_of,
    is_result_envelope,
)
from aioqless.errors import DecryptionError, require_extra

KEY = 32  # bytes


class Encryption:
    """Seals the data that a client puts, and opens those it reads: `Client(url,
    codec=Encryption(new_key, old_key))`.

    The first key seals, all of them open: to rotate, give the new one in front, and take the old
    one away when no job is left that was sealed with it. `mode`: `encrypt`, or `sign`. With
    `required`, data that nobody has sealed are refused, else they are read as they are. Raises
    ValueError for keys that `Encryption.new_key` can't have made, and AioqlessError without the library
    that encrypts."""

    bound_to_klass = True

    def __init__(
        self, *keys: str, mode: Literal["encrypt", "sign"] = "encrypt", required: bool = False
    ) -> None:
        if mode not in ("encrypt", "sign"):
            raise ValueError(f"mode must be 'encrypt' or 'sign', not {mode!r}")
        if not keys:
            raise ValueError("encryption needs a key; Encryption.new_key() makes one")
        self.mode = mode
        self.required = required
        self._keys = [_key(number, key) for number, key in enumerate(keys, 1)]
        self._fernet: Any = _fernet(keys)

    @staticmethod
    def new_key() -> str:
        """A key, for a secret store."""
        return base64.urlsafe_b64encode(os.urandom(KEY)).decode()

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] = os.environ) -> Self | None:
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

    def encode(self, text: bytes, klass: str) -> bytes:
        """The data of a job of this klass as they are stored."""
        if self.mode == "encrypt":
            return msgspec.json.encode(
                EncryptedData(self._fernet.encrypt(_bound(klass, text)).decode())
            )
        return msgspec.json.encode(SignedData(_mac(self._keys[0], klass, text), msgspec.Raw(text)))

    def encode_result(self, text: bytes, jid: str) -> bytes:
        """What a job's handler returned as it is kept: bound to the job, and never to be taken for
        data."""
        if self.mode == "encrypt":
            return self.encode(text, _result_of(jid))
        return msgspec.json.encode(
            {SIGNED: _mac(self._keys[0], _result_of(jid), text), RESULT: text.decode()}
        )

    def _decrypt(self, token: str, klass: str) -> bytes:
        """What was encrypted for this klass. Raises DecryptionError."""
        from cryptography.fernet import InvalidToken

        try:
            text: bytes = self._fernet.decrypt(token.encode())
        except (InvalidToken, ValueError):
            raise DecryptionError(
                "its data are encrypted with a key that isn't here, or were changed"
            ) from None
        prefix = _bound(klass, b"")
        if not text.startswith(prefix):
            raise DecryptionError(f"its data were encrypted for another klass than {klass}")
        return text[len(prefix) :]

    def _verify(self, mac: str, text: bytes, klass: str) -> bytes:
        """Data that were signed for this klass. Raises DecryptionError."""
        if not any(
            hmac.compare_digest(_mac(key, klass, text).encode(), mac.encode()) for key in self._keys
        ):
            raise DecryptionError(
                f"its data are signed with a key that isn't here or for another klass than {klass}, or were changed"
            )
        return text

    def decode(self, text: str, klass: str) -> str:
        """Return the data of a job as it was put.

        Raises:
            DecryptionError: It can't be trusted, or not be read.
        """
        envelope = envelope_of(text)
        if envelope is None:
            if self.required:
                raise DecryptionError(
                    "its data is neither encrypted nor signed, which this client requires"
                )
            return text
        if isinstance(envelope, EncryptedData):
            decoded = self._decrypt(envelope.token, klass)
        else:
            decoded = self._verify(envelope.mac, bytes(envelope.data), klass)
        return decoded.decode("utf-8", "surrogateescape")

    def decode_result(self, value: Any, jid: str) -> Any:
        """Return what the handler of a job returned.

        Raises:
            DecryptionError: It can't be trusted, or not be read.
        """
        if not is_result_envelope(value):
            if self.required:
                raise DecryptionError(
                    f"the result of job {jid} is neither encrypted nor signed, "
                    "which this client requires"
                )
            return value
        bound = _result_of(jid)
        try:
            if ENCRYPTED in value:
                return json_data.decoded(self._decrypt(value[ENCRYPTED], bound).decode())
            text = value[RESULT].encode("utf-8", "surrogatepass")
            return json_data.decoded(self._verify(value[SIGNED], text, bound).decode())
        except DecryptionError:
            raise DecryptionError(
                f"the result of job {jid} is encoded with a key that isn't here or as that of "
                "another job, or was changed"
            ) from None

    def __repr__(self) -> str:
        return f"<Encryption mode={self.mode!r} keys={len(self._keys)} required={self.required}>"


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
            f"key {number} of the encryption is not {KEY} bytes in URL-safe base64; Encryption.new_key() makes one"
        )
    return made


def _fernet(keys: tuple[str, ...]) -> Any:
    with require_extra("encryption"):
        from cryptography.fernet import Fernet, MultiFernet

    return MultiFernet([Fernet(key) for key in keys])
