"""Processes that use the private server, and programs that pretend to be one."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as NotConnected
from redis.retry import Retry

from aioqless.contrib.private_redis import Server, Settings, ensure
from aioqless.contrib.private_redis.data_dir import DataDir, is_unlocked
from aioqless.errors import ServerUnavailable

BRIEF = Settings(idle_timeout=1.5)
SOURCES = Path(__file__).parents[3]
USER = """
import sys
from pathlib import Path
sys.path.append(sys.argv.pop(1))
from aioqless.contrib.private_redis import Settings, ensure
from redis import Redis
server = ensure(Path(sys.argv[1]), Settings(idle_timeout=float(sys.argv[2])))
client = Redis(unix_socket_path=str(server.data_dir / "redis.sock"))
print(client.info("server")["process_id"], flush=True)
sys.stdin.read()
"""
SLOW_READER = """
import os, socketserver, time
began = None
os.mkdir("appendonlydir")
class Talk(socketserver.StreamRequestHandler):
    def handle(self):
        global began
        began = began or time.monotonic()
        for line in self.rfile:
            lines = [self.rfile.readline() for _ in range(2 * int(line[1:]))]
            if lines[1] == b"SHUTDOWN\\r\\n":
                os._exit(0)
            elif lines[1] == b"INFO\\r\\n":
                answer = b"connected_clients:1\\r\\ntotal_connections_received:1\\r\\n"
                self.wfile.write(b"$%d\\r\\n%s\\r\\n" % (len(answer), answer))
            elif lines[1] == b"HELLO\\r\\n":
                self.wfile.write(b"%1\\r\\n+proto\\r\\n:3\\r\\n")
            elif time.monotonic() - began < 3.5:
                self.wfile.write(b"-LOADING Redis is loading the dataset in memory\\r\\n")
            else:
                self.wfile.write(b"+PONG\\r\\n")
socketserver.ThreadingUnixStreamServer("redis.sock", Talk).serve_forever()
"""


def until(condition: Callable[[], object], timeout: float = 60.0) -> None:
    """Wait for a condition; fail when it takes longer than `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def connect(server: Server) -> "Redis":
    """Connect a client that tries only once."""
    return Redis.from_url(server.url, retry=Retry(NoBackoff(), 0), decode_responses=True)


def user(place: Path, idle_timeout: float) -> "subprocess.Popen[bytes]":
    """Start a process that stays connected; it prints the server's process id when it is."""
    command = [sys.executable, "-c", USER, str(SOURCES), str(place), str(idle_timeout)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def process_of(server: Server) -> int:
    with connect(server) as redis:
        return int(redis.info("server")["process_id"])


def parent_of(process: int) -> int:
    stat = Path(f"/proc/{process}/stat")
    if stat.exists():  # Linux without ps, as in small containers
        return int(stat.read_text().rpartition(")")[2].split()[1])
    return int(
        subprocess.run(
            ["/bin/ps", "-o", "ppid=", "-p", str(process)], capture_output=True, check=True
        ).stdout
    )


def has_gone(place: Path) -> bool:
    directory = DataDir(place)
    return is_unlocked(directory.server_lock) and is_unlocked(directory.supervisor_lock)


def install_fake_server(folder: Path, name: str, says: str, does: str = "exit 1") -> Path:
    """Put a program on PATH that claims to be a server."""
    program = folder / name
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then echo "{says}"; exit; fi\n{does}\n'
    )
    program.chmod(0o700)
    return program


@contextmanager
def unprivileged(path: Path) -> Iterator[None]:
    """Apply the permissions of a path to root, too: run as another user, who owns it meanwhile."""
    if os.geteuid() != 0:
        yield
        return
    path.parent.chmod(0o755)
    os.chown(path, 54321, -1)
    os.seteuid(54321)
    try:
        yield
    finally:
        os.seteuid(0)
        os.chown(path, 0, -1)


def fill(disk: Path) -> Path:
    """Fill the file system; returns the file that does."""
    with suppress(OSError), (disk / "fill").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return disk / "fill"


class Writer:
    """Increments a counter in Redis, and calls `ensure` before it connects again, as clients do.

    `lost` has the acknowledged increments that are missing.
    """

    def __init__(self, server: Server) -> None:
        self.acknowledged = 0
        self.lost = 0
        self.reconnected = 0
        self._server = server
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        redis = connect(self._server)
        while not self._stopped.is_set():
            try:
                written = redis.incr("written")
                self.lost += max(0, self.acknowledged + 1 - written)
                self.acknowledged = written
            except NotConnected:
                self.reconnected += 1
                self._stopped.wait(0.02)
                with suppress(ServerUnavailable):
                    ensure(self._server.data_dir)
        redis.close()

    def __enter__(self) -> "Writer":
        self._thread.start()
        self.wait_for_more()
        return self

    def wait_for_outage(self, known: int) -> None:
        until(lambda: self.reconnected > known)

    def wait_for_more(self) -> None:
        enough = self.acknowledged + 200
        until(lambda: self.acknowledged >= enough)

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
