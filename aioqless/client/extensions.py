"""Where a client reaches extensions: by their names, and only when they are used."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from aioqless.client.codec import Codec, PlainCodec


class PrivateServer(Protocol):
    """A running server that was started on demand."""

    @property
    def url(self) -> str:
        """Its URL."""

    @property
    def data_dir(self) -> Path:
        """Its data directory."""

    @property
    def program(self) -> str:
        """Its name and version."""


class ServerProvider(Protocol):
    """Starts a Redis for a client that was given no URL."""

    def ensure(self) -> PrivateServer:
        """Find or start the server.

        Raises:
            ServerUnavailable: It can't be found, started or reached.
        """


def server_provider() -> ServerProvider:
    """Return the provider of the private Redis."""
    return cast(ServerProvider, import_module("aioqless.contrib.private_redis"))


def codec_from_environment() -> Codec:
    """Return the codec that AIOQLESS_ENCRYPTION_KEYS asks for; without it, one for plain data."""
    if not os.environ.get("AIOQLESS_ENCRYPTION_KEYS"):
        return PlainCodec()
    encryption = import_module("aioqless.contrib.encryption")
    codec: Codec | None = encryption.Encryption.from_environment()
    return codec or PlainCodec()
