"""Where a client reaches extensions: by their names, and only when they are used."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

from aioqless.client.codec import Codec, PlainCodec


def ensure_private_server() -> tuple[str, dict[str, str]]:
    """Find or start the private Redis; return its URL, and what logs say of it.

    Raises:
        ServerUnavailable: It can't be found, started or reached.
    """
    server = import_module("aioqless.contrib.private_redis").ensure()
    return server.url, {"program": server.program, "data": str(server.data_dir)}


def codec_from_environment() -> Codec:
    """Return the codec that AIOQLESS_ENCRYPTION_KEYS asks for; without it, one for plain data."""
    if not os.environ.get("AIOQLESS_ENCRYPTION_KEYS"):
        return PlainCodec()
    encryption = import_module("aioqless.contrib.encryption")
    codec: Codec | None = encryption.Encryption.from_environment()
    return codec or PlainCodec()


def output() -> ModuleType:
    """Return the module of jobs' output."""
    return import_module("aioqless.contrib.output")


def job_sets() -> ModuleType:
    """Return the module of job sets."""
    return import_module("aioqless.contrib.job_sets")


def durable() -> ModuleType:
    """Return the module of steps and cursors."""
    return import_module("aioqless.contrib.durable")
