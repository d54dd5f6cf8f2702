"""How job data and results are stored: as they are, or by a codec such as the one that encrypts."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from aioqless.client.job_data import Json
from aioqless.errors import DecryptionError

# The marks of data that `aioqless.contrib.encryption` has encoded. Known here so that a client
# without the key says so instead of handing the envelope to a handler.
ENCRYPTED, SIGNED, RESULT = "aioqless-encrypted", "aioqless-signed", "result"
_COMMON_START = '"aioqless-'  # of both marks


class Codec(Protocol):
    """Encodes what a client writes to Redis and decodes what it reads: `Client(codec=...)`.

    Attributes:
        bound_to_klass: Whether encoded data can only be decoded for the klass it was encoded for.
    """

    bound_to_klass: bool

    def encode(self, text: bytes, klass: str) -> bytes:
        """Return the data of a job of a klass, as JSON, in the form in which it is stored."""

    def decode(self, text: str, klass: str) -> str:
        """Return stored data as it was before `encode`.

        Raises:
            DecryptionError: Its signature is wrong, or no key decrypts it.
        """

    def encode_result(self, text: bytes, jid: str) -> bytes:
        """Return the result of a job, as JSON, in the form in which it is stored."""

    def decode_result(self, value: Json, jid: str) -> Any:
        """Return a stored result, decoded from JSON, as the handler returned it.

        Raises:
            DecryptionError: Its signature is wrong, or no key decrypts it.
        """


class PlainCodec:
    """Stores everything as it is, and refuses to read what another client has encrypted."""

    bound_to_klass = False

    def encode(self, text: bytes, klass: str) -> bytes:  # noqa: ARG002  # as in Codec
        """Return the data itself."""
        return text

    def decode(self, text: str, klass: str) -> str:  # noqa: ARG002  # as in Codec
        """Return the data itself.

        Raises:
            DecryptionError: It is encrypted or signed.
        """
        if envelope_of(text) is not None:
            raise DecryptionError(
                "its data is encrypted or signed, and this client has no key: "
                "Client(..., codec=Encryption(key)) or AIOQLESS_ENCRYPTION_KEYS"
            )
        return text

    def encode_result(self, text: bytes, jid: str) -> bytes:  # noqa: ARG002  # as in Codec
        """Return the result itself."""
        return text

    def decode_result(self, value: Json, jid: str) -> Any:
        """Return the result itself.

        Raises:
            DecryptionError: It is encrypted or signed.
        """
        if is_result_envelope(value):
            raise DecryptionError(
                f"the result of job {jid} is encrypted or signed, and this client has no key: "
                "Client(..., codec=Encryption(key)) or AIOQLESS_ENCRYPTION_KEYS"
            )
        return value


PLAIN: Codec = PlainCodec()


class EncryptedData(msgspec.Struct, forbid_unknown_fields=True):
    """Data as it is stored when it is encrypted."""

    token: str = msgspec.field(name=ENCRYPTED)


class SignedData(msgspec.Struct, forbid_unknown_fields=True):
    """Data as it is stored when it is signed."""

    mac: str = msgspec.field(name=SIGNED)
    data: msgspec.Raw


def envelope_of(text: str) -> EncryptedData | SignedData | None:
    """Read encrypted or signed data; None for any other."""
    if _COMMON_START not in text:  # nearly always
        return None
    kinds: dict[str, type[EncryptedData | SignedData]] = {
        ENCRYPTED: EncryptedData,
        SIGNED: SignedData,
    }
    for mark, kind in kinds.items():
        if f'"{mark}"' in text:
            try:
                return msgspec.json.decode(text.encode("utf-8", "surrogateescape"), type=kind)
            except msgspec.MsgspecError:  # data of an application that only looks like it
                continue
    return None


def is_result_envelope(value: object) -> bool:
    """Return whether a stored result is encrypted or signed."""
    return (
        isinstance(value, dict)
        and value.keys() in ({ENCRYPTED}, {SIGNED, RESULT})
        and all(isinstance(each, str) for each in value.values())
    )
