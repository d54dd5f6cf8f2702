"""A dedicated Redis for the benchmarks, and its measurements."""

from __future__ import annotations

import hashlib
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError as NotConnected

from aioqless.contrib.private_redis.server_binary import find_server_binary
from aioqless.store.command_header import command_names
from aioqless.store.script_composer import compose


class Server:
    """A running server without persistence."""

    def __init__(self, port: int, pid: int) -> None:
        self.url = f"redis://127.0.0.1:{port}/0"
        self.pid = pid
        self.redis: Any = Redis.from_url(self.url, socket_timeout=None)

    def empty(self) -> None:
        """Delete all data and reset all statistics."""
        self.redis.flushall()
        self.redis.script_flush()
        self.redis.config_resetstat()

    def cpu(self) -> float:
        """Return the processor seconds that the server used."""
        used: dict[str, float] = self._info("cpu")
        return used["used_cpu_user"] + used["used_cpu_sys"]

    def memory(self) -> int:
        """Return the bytes used by its data."""
        return int(self._info("memory")["used_memory"])

    def script_seconds(self) -> float:
        """Return the seconds spent within script calls."""
        return float(self._info("commandstats").get("cmdstat_evalsha", {}).get("usec", 0)) / 1e6

    def count_commands(self, seconds: float) -> int:
        """Count the commands that clients send within some seconds, by MONITOR.

        Commands called inside of scripts are not counted.
        """
        count = 0
        end = time.monotonic() + seconds
        with self.redis.monitor() as monitor:
            while (left := end - time.monotonic()) > 0:
                if monitor.connection.can_read(timeout=left):
                    count += monitor.next_command()["client_type"] != "lua"
        return count

    def record_slow_calls(self, microseconds: int) -> None:
        """Record every call from now on that takes at least this long."""
        self.redis.config_set("slowlog-log-slower-than", microseconds)
        self.redis.config_set("slowlog-max-len", 1_000_000)
        self.redis.config_set("latency-monitor-threshold", 1)
        self.redis.slowlog_reset()
        self.redis.execute_command("LATENCY RESET")

    def slow_calls(self) -> dict[str, list[float]]:
        """Return the recorded calls of our scripts: ms by command, the longest first."""
        names = {
            hashlib.sha1(compose(name, "ql").text.encode()).hexdigest(): name
            for name in command_names()
        }
        calls: dict[str, list[float]] = {}
        for entry in self.redis.slowlog_get(
            -1
        ):  # commands inside of scripts are recorded too; their time is part of their script's
            word, _, rest = entry["command"].decode(errors="replace").partition(" ")
            name = "a script's first call" if word == "EVAL" else names.get(rest.partition(" ")[0])
            if name:
                calls.setdefault(name, []).append(entry["duration"] / 1000)
        return {name: sorted(times, reverse=True) for name, times in calls.items()}

    def latest_latency(self) -> float:
        """Return the longest latency event in ms since recording started, by LATENCY."""
        events = self.redis.execute_command("LATENCY LATEST")
        return max(
            (
                float(longest)
                for event, _, _, longest, *_ in events
                if event in (b"command", b"fast-command")
            ),
            default=0,
        )

    def version(self) -> str:
        known = self._info("server")
        return (
            f"{known.get('server_name', 'redis').capitalize()} "
            f"{known.get('valkey_version') or known['redis_version']}"
        )

    def _info(self, section: str) -> dict[str, Any]:
        return dict(self.redis.info(section))


@contextmanager
def server() -> Iterator[Server]:
    """Start the system's server, or else the wheel's, on a free loopback port within the block."""
    with tempfile.TemporaryDirectory(prefix="aioqless-bench-") as folder:
        port = _free_port()
        options = [
            "--bind",
            "127.0.0.1",
            "--port",
            str(port),
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            folder,
        ]
        process = subprocess.Popen(
            [str(find_server_binary().path), *options], stdout=subprocess.DEVNULL
        )
        try:
            started = Server(port, process.pid)
            _await_answer(started.redis)
            yield started
            started.redis.close()
        finally:
            process.terminate()
            process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def _await_answer(redis: Redis) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            redis.ping()
            return
        except NotConnected:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
