"""A private server for each example."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from aioqless.contrib import private_redis


@pytest.fixture
def data() -> Iterator[Path]:
    """Return the data directory of a private server, which is removed after the test."""
    path = Path(tempfile.mkdtemp(prefix="aioqless-"))
    yield path
    private_redis.stop(path, force=True)
    shutil.rmtree(path)
