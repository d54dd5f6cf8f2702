"""Encryption and signing of job data and results.

Encrypted data is still JSON: `{"aioqless-encrypted": "…"}`; signed data is
`{"aioqless-signed": "…", "data": …}`, readable by everybody. Both are bound to the klass of the
job: data that was put for one handler is refused by another. Results are bound to their job:
`{"aioqless-encrypted": "…"}`, or
`{"aioqless-signed": "…", "result": "its JSON"}`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Mapping
from typing import Any, Literal, Self

import msgspec

from aioqless.client import job_data
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
    """A codec that encrypts or signs: `Client(url, codec=Encryption(new_key, old_key))`.

    Args:
        keys: The first key encrypts, all of them decrypt. To rotate, put a new key in front, and
            remove the old one when no job is left that was encrypted with it.
        mode: "encrypt" or "sign".
        required: Refuse data that is neither encrypted nor signed, instead of reading it.

    Raises:
        ValueError: An invalid mode, or keys that `Encryption.new_key` has not made.
        MissingExtra: The library that encrypts is not installed.
    """

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
        """Return a new key, for a secret store."""
        return base64.urlsafe_b64encode(os.urandom(KEY)).decode()

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] = os.environ) -> Self | None:
        """Read AIOQLESS_ENCRYPTION_KEYS, _MODE and _REQUIRED; None without keys.

        Keys are separated by commas; the mode is encrypt or sign; 1 means required.
        """
        keys = [
            key.strip()
            for key in variables.get("AIOQLESS_ENCRYPTION_KEYS", "").split(",")
            if key.strip()
        ]
        mode: Any = variables.get("AIOQLESS_ENCRYPTION_MODE") or "encrypt"
        return (
            cls(*keys, mode=mode, required=variables.get("AIOQLESS_ENCRYPTION_REQUIRED") == "1")
            if keys
            else None
        )

    def encode(self, text: bytes, klass: str) -> bytes:
        """Return the data of a job of this klass as it is stored."""
        if self.mode == "encrypt":
            return msgspec.json.encode(
                EncryptedData(self._fernet.encrypt(_bound(klass, text)).decode())
            )
        return msgspec.json.encode(SignedData(_mac(self._keys[0], klass, text), msgspec.Raw(text)))

    def encode_result(self, text: bytes, jid: str) -> bytes:
        """Return a job's result as it is stored: bound to the job, and never valid as data."""
        if self.mode == "encrypt":
            return self.encode(text, _result_of(jid))
        return msgspec.json.encode(
            {SIGNED: _mac(self._keys[0], _result_of(jid), text), RESULT: text.decode()}
        )

    def _decrypt(self, token: str, klass: str) -> bytes:
        """Return what was encrypted for this klass; raise DecryptionError."""
        from cryptography.fernet import InvalidToken

        try:
            text: bytes = self._fernet.decrypt(token.encode())
        except (InvalidToken, ValueError):
            raise DecryptionError(
                "its data is encrypted with an unknown key, or was changed"
            ) from None
        prefix = _bound(klass, b"")
        if not text.startswith(prefix):
            raise DecryptionError(f"its data was encrypted for another klass than {klass}")
        return text[len(prefix) :]

    def _verify(self, mac: str, text: bytes, klass: str) -> bytes:
        """Return data that was signed for this klass; raise DecryptionError."""
        if not any(
            hmac.compare_digest(_mac(key, klass, text).encode(), mac.encode()) for key in self._keys
        ):
            raise DecryptionError(
                "its data is signed with an unknown key or for another klass than "
                f"{klass}, or was changed"
            )
        return text

    def decode(self, text: str, klass: str) -> str:
        """Return the data of a job as it was put.

        Raises:
            DecryptionError: The signature is wrong, or no key decrypts it.
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
            DecryptionError: The signature is wrong, or no key decrypts it.
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
                return job_data.decode(self._decrypt(value[ENCRYPTED], bound).decode())
            text = value[RESULT].encode("utf-8", "surrogatepass")
            return job_data.decode(self._verify(value[SIGNED], text, bound).decode())
        except DecryptionError:
            raise DecryptionError(
                f"the result of job {jid} is encoded with an unknown key or as that of "
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
            f"key {number} of the encryption is not {KEY} bytes in URL-safe base64; "
            "Encryption.new_key() makes one"
        )
    return made


def _fernet(keys: tuple[str, ...]) -> Any:
    with require_extra("encryption"):
        from cryptography.fernet import Fernet, MultiFernet

    return MultiFernet([Fernet(key) for key in keys])
