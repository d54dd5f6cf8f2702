"""The process that owns a private server: it starts it, starts it again when it dies, stops it when
nobody uses it.

Users are the connections to the socket, so that a user killed with -9 is gone at once. Nothing
depends on this process staying alive: a guard replaces it when it is killed, the kernel ends the
server in good order with it (on Linux), and whoever opens a server that has no watcher gives it a
new one."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .data_dir import PAUSE, SOCKET, Home, NoServer, drop, is_free, take
from .resp_client import Line, Refused, call
from .server_binary import note_writer, program_at, writer_of
from .settings import Settings

LARGEST_LOG = 1 << 20  # bytes; a larger one is emptied before the next start
STEADY = 5.0  # seconds; a server that lives shorter than that counts as a strike
STRIKES = 10  # in a row, until we give up
REPLACEMENTS = 20  # times that a killed watcher is replaced


@dataclass(frozen=True)
class Watcher:
    """Owns the server's process. Runs in the data directory: there the socket's name is short,
    whatever its path."""

    home: Home
    program: Path
    settings: Settings

    def run(self) -> None:
        """Keep the server up while it has users; raise `NoServer` when it does not start or does
        not stay.

        Only the first start must succeed at once. One that fails later, such as on a full disk,
        counts as a death."""
        strikes, started = 0, False
        while True:
            began, died = time.monotonic(), "the server died under its users"
            try:
                with closing(self._reach()) as line:
                    started = True
                    if not self._died_in_use(line):
                        return
            except (NoServer, OSError) as error:
                if not started:
                    raise
                died = f"the server did not start again ({error})"
            strikes = strikes + 1 if time.monotonic() - began < STEADY else 0
            if strikes == STRIKES:
                raise NoServer(f"the server died {STRIKES} times, each time soon after its start")
            say(f"{died} and is started again")
            time.sleep(min(0.05 * 2**strikes, 2.0))

    def _reach(self) -> Line:
        """Connect to the server, starting it unless it runs, and wait until it has read its
        data."""
        server: subprocess.Popen[bytes] | None = None
        patience = self.settings.patience
        deadline = time.monotonic() + patience
        while True:
            line = call(Path(SOCKET), patience)
            if line and not line.loading:
                line.watch()
                return line
            if line:
                line.close()
                deadline = time.monotonic() + patience
            elif server is None:
                server = self._start()
            elif server.poll() is not None:
                raise NoServer(
                    f"the server ended with status {server.returncode} instead of starting"
                )
            if time.monotonic() > deadline:
                raise NoServer(f"a server holds the data but has not answered for {patience:g} s")
            time.sleep(PAUSE)

    def _start(self) -> subprocess.Popen[bytes] | None:
        """Start the server; None while a former one is still ending."""
        lock = take(self.home.serving)
        if lock is None:
            return None
        try:
            program = program_at(self.program)
            writer = writer_of(self.home)
            if program is None or (writer and not program.may_open(writer)):
                raise NoServer(f"{self.program} has been removed or replaced")
            note_writer(self.home, program)
            if os.fstat(sys.stdout.fileno()).st_size > LARGEST_LOG:
                os.ftruncate(sys.stdout.fileno(), 0)
            command = [str(program.path), *self.settings.options()]
            return subprocess.Popen(command, pass_fds=(lock,), preexec_fn=end_with_parent())
        finally:
            os.close(lock)  # the server's own copy keeps it locked

    def _died_in_use(self, line: Line) -> bool:
        """Watch until the server has gone: True when it died in use, False when it was stopped or
        died unneeded."""
        tick = self.settings.grace / 10
        arrivals, used = -1, time.monotonic()
        while True:
            idle = time.monotonic() - used
            try:
                connected, arrived = line.connections()
                # A new arrival counts though it left: it may have been a call of `ensure`, about to
                # connect.
                if connected > 1 or arrived != arrivals:
                    arrivals, used = arrived, time.monotonic()
                elif idle > self.settings.grace and self._stop(line, arrivals):
                    return False
            except Refused:  # busy with somebody's script
                used = time.monotonic()
            except OSError:
                return idle < self.settings.grace / 4
            select.select([line], [], [], tick)  # readable only when the server hangs up

    def _stop(self, line: Line, arrivals: int) -> bool:
        """Stop the server, unless somebody came just now or is about to."""
        turn = take(self.home.turning)
        if turn is None:
            return False
        try:
            if line.connections() != (1, arrivals):
                return False
            say(f"nobody has used the server for {self.settings.grace:g} s; stopping it")
            line.shut_down()
            is_free(self.home.serving, patience=self.settings.patience)
            return True
        finally:
            drop(turn)


def end_with_parent() -> Callable[[], object] | None:
    """What a child runs before it becomes the server, so that the kernel sends it SIGTERM when the
    watcher dies."""
    if sys.platform != "linux":
        return None
    from ctypes import CDLL

    def ask_kernel(libc: CDLL, parent: int) -> None:
        libc.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    return partial(ask_kernel, CDLL(None), os.getpid())


def guard() -> None:
    """Go on in a child, and stay behind to replace it when it is killed."""
    for _ in range(REPLACEMENTS):
        child = os.fork()
        if child == 0:
            return
        status = os.waitpid(child, 0)[1]
        if os.WIFEXITED(status):
            os._exit(os.WEXITSTATUS(status))
        time.sleep(0.1)
    os._exit(1)


def say(text: str) -> None:
    """Add a line to the log, if it can be written: the server matters more."""
    with suppress(OSError):
        os.write(
            1, f"{os.getpid()}:aioqless {time.strftime('%d %b %Y %H:%M:%S')} {text}\n".encode()
        )


def main() -> None:
    """Watch the home that the command line names; the caller sees this end once the lock is
    held."""
    home, program, settings = (
        Home(Path(sys.argv[1])),
        Path(sys.argv[2]),
        Settings(**json.loads(sys.argv[3])),
    )
    os.umask(0o077)
    lock = take(home.watching, patience=1.0)
    if lock is None:
        sys.exit("this server has a watcher already")
    os.pwrite(
        lock, f"{os.getpgrp():<10}".encode(), 0
    )  # by which `stop` reaches the guard, the watcher and the server
    if os.fork():
        os._exit(0)
    guard()
    try:
        Watcher(home, program, settings).run()
    except (NoServer, OSError) as error:
        say(str(error))
        sys.exit(1)
