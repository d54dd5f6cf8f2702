"""A private server for each example."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from aioqless.contrib import private_redis


def environment_of(data: Path) -> dict[str, str]:
    """Return the environment of a program that uses the private server of a data directory."""
    others = ("AIOQLESS_URL", "REDIS_URL")
    kept = {name: value for name, value in os.environ.items() if name not in others}
    return kept | {"AIOQLESS_DATA": str(data)}


@pytest.fixture
def data() -> Iterator[Path]:
    """Return the data directory of a private server, which is removed after the test."""
    path = Path(tempfile.mkdtemp(prefix="aioqless-"))
    yield path
    private_redis.stop(path, force=True)
    shutil.rmtree(path)
