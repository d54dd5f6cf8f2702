"""A private server stops after its last user, or on request."""

import time
from pathlib import Path

import pytest

from aioqless.contrib.private_redis import Settings, ensure, running, stop
from aioqless.errors import ServerUnavailable
from tests.contrib.private_redis.users import connect, has_gone, until, user


def test_server_stops_after_its_last_user_was_killed(place: Path, either_program: str) -> None:
    users = [user(place, 1.5), user(place, 1.5)]
    for process in users:
        assert process.stdout and process.stdout.readline()
    users[0].kill()
    users[0].communicate()
    server = ensure(place)
    with connect(server) as redis:
        until(lambda: redis.info("server")["uptime_in_seconds"] >= 2)
        redis.set("kept", "yes")
    users[1].kill()
    users[1].communicate()
    until(lambda: has_gone(place))
    assert running(place) is None
    with connect(ensure(place)) as redis:
        assert redis.get("kept") == "yes"


def test_server_joined_while_it_stops_is_started_again(place: Path) -> None:
    tiny = Settings(idle_timeout=0.8)  # a machine that stalls for longer connects too late
    started = set()
    for step in range(100):
        server = ensure(place, tiny)
        with connect(server) as redis:
            started.add(redis.info("server")["process_id"])
        # About as long as the supervisor waits: sometimes a little shorter, sometimes a little
        # longer.
        time.sleep(0.8 + step * 0.04)
        if step > 2 and len(started) > 1:
            break
    assert len(started) > 1


def test_stop_is_refused_while_users_are_connected(place: Path) -> None:
    assert stop(place) is False
    server = ensure(place)
    with connect(server) as redis:
        redis.set("kept", "yes")
        with pytest.raises(ServerUnavailable, match="1 connected"):
            stop(place)
        assert redis.get("kept") == "yes"
        assert stop(place, force=True) is True
    assert has_gone(place)
    assert stop(place) is False
    with connect(ensure(place)) as redis:
        assert redis.get("kept") == "yes"
