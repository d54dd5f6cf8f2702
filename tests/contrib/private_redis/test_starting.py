"""The first process that needs a private server starts it, and all processes share it."""

import stat
from pathlib import Path

from aioqless.contrib.private_redis import ensure, stop
from aioqless.contrib.private_redis.data_dir import DataDir
from tests.contrib.private_redis.users import connect, process_of, user

MODULE = "aioqless.contrib.private_redis.server_supervisor"


def test_second_process_joins_the_running_server(place: Path, either_program: str) -> None:
    server = ensure(place)
    assert server.data_dir == place
    assert server.program.startswith(either_program)
    first = process_of(server)
    assert ensure(place) == server
    assert process_of(server) == first


def test_concurrent_starts_result_in_one_server(place: Path, either_program: str) -> None:
    users = [user(place, 20) for _ in range(8)]
    try:
        answers = {process.stdout.readline() for process in users if process.stdout}
    finally:
        for process in users:
            process.communicate()
    assert answers == {b"%d\n" % process_of(ensure(place))}
    assert DataDir(place).log_file.read_text().lower().count("ready to accept connections") == 1


def test_server_options_lose_no_data(place: Path, either_program: str) -> None:
    with connect(ensure(place)) as redis:
        assert redis.config_get(
            "appendonly", "appendfsync", "save", "port", "maxmemory-policy", "aof-use-rdb-preamble"
        ) == {
            "appendonly": "yes",
            "appendfsync": "always",
            "aof-use-rdb-preamble": "no",
            "save": "",
            "port": "0",
            "maxmemory-policy": "noeviction",
        }


def test_files_are_readable_by_their_owner_only(place: Path) -> None:
    with connect(ensure(place)) as redis:
        redis.set("secret", "1")
    for path in [place, *place.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) in (0o600, 0o700), path


def test_socket_of_a_directory_with_a_long_name_is_linked(place: Path) -> None:
    long = place / ("50% a?b#c " * 12) / ("x" * 100)
    try:
        server = ensure(long)
        assert len(server.url) < 100
        with connect(server) as redis:
            assert redis.ping()
        assert ensure(long) == server
        assert ensure(place).url != server.url
    finally:
        stop(long, force=True)
        DataDir(long).socket_path().parent.unlink()


def test_large_log_is_emptied_before_a_start(place: Path) -> None:
    place.mkdir(mode=0o700)
    DataDir(place).log_file.write_bytes(b"old\n" * (1 << 19))
    ensure(place)
    assert DataDir(place).log_file.stat().st_size < 100_000
