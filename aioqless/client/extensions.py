"""Where a client reaches extensions: by their names, and only when they are used."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from aioqless.client.codec import Codec, PlainCodec


def ensure_private_server() -> tuple[str, dict[str, str]]:
    """Find or start the private Redis; return its URL, and what logs say of it.

    Raises:
        ServerUnavailable: It can't be found, started or reached.
    """
    server = load("private_redis").ensure()
    return server.url, {"program": server.program, "data": str(server.data_dir)}


def codec_from_environment() -> Codec:
    """Return the codec that AIOQLESS_ENCRYPTION_KEYS asks for; without it, one for plain data."""
    if not os.environ.get("AIOQLESS_ENCRYPTION_KEYS"):
        return PlainCodec()
    encryption = load("encryption")
    codec: Codec | None = encryption.Encryption.from_environment()
    return codec or PlainCodec()


def load(name: str) -> ModuleType:
    """Return the module of an extension."""
    return import_module(f"aioqless.contrib.{name}")


def find(name: str) -> ModuleType | None:
    """Return a module of an extension, unless there is no such extension."""
    extension = name.partition(".")[0]
    return load(name) if find_spec(f"aioqless.contrib.{extension}") else None
