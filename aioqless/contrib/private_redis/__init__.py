"""A Redis of the user's own, for when nobody configured one.

`ensure` finds or starts it; all processes that name the same data directory share it; it goes when
its users have gone.

    home.py      where everything is: directory, names, locks, socket
    program.py   which server to start, and which must not open these data
    settings.py  how it is run
    watcher.py   the process that starts it, keeps it up, stops it
    backup.py    a copy of the data while it goes on
    line.py      a connection, without a client library
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from .backup import backup
from .data_dir import PAUSE, Home, NoServer, explained, is_free, refuse_unless_ours
from .resp_client import call
from .server_binary import Program, find_program, writer_of
from .settings import Settings

__all__ = [
    "NoServer",
    "Program",
    "Server",
    "Settings",
    "backup",
    "ensure",
    "find_program",
    "running",
    "stop",
]

# The watcher is imported as `private_redis`, not as `aioqless.contrib.private_redis`: it would load
# all of aioqless to use none of it.
WATCH = (
    "import sys; sys.path.append(sys.argv.pop(1)); from private_redis.watcher import main; main()"
)


@dataclass(frozen=True)
class Server:
    """A private server that runs."""

    url: str
    data_dir: Path
    program: str  # name and version


@explained()
def ensure(data_dir: Path | None = None, settings: Settings | None = None) -> Server:
    """Return the server that keeps its data in `data_dir`, starting it unless it runs.

    A connection makes a user, so connect soon: the server stays for `settings.grace` seconds
    without one. Call it again before each reconnect; where the server runs that costs less than a
    millisecond. Raises `NoServer`."""
    settings = settings or Settings()
    home = Home.at(data_dir)
    home.prepare()
    launched = False
    deadline = time.monotonic() + settings.patience
    while True:
        # Sharing the turn with the others who join keeps the watcher from stopping the server
        # between our two looks.
        with home.turn(shared=True, patience=settings.patience):
            if line := call(home.address()):
                line.close()
                if not line.loading and not is_free(home.watching):
                    return _server(home)
                deadline = time.monotonic() + settings.patience
        if time.monotonic() > deadline:
            raise NoServer(
                f"the server in {home.path} has not answered for {settings.patience:g} s{home.trouble()}"
            )
        with home.turn(patience=settings.patience):
            if is_free(home.watching):
                if launched:
                    raise NoServer(f"the server in {home.path} does not start{home.trouble()}")
                _launch(home, settings)
                launched = True
        time.sleep(PAUSE)


@explained()
def running(data_dir: Path | None = None) -> tuple[Server, int] | None:
    """The server that keeps its data in `data_dir`, and how many connections use it; None unless it
    runs."""
    home = Home.at(data_dir)
    if not home.path.is_dir() or not (line := call(home.address())):
        return None
    with closing(line):
        return _server(home), line.users()


@explained()
def stop(
    data_dir: Path | None = None, *, force: bool = False, patience: float = Settings.patience
) -> bool:
    """Stop the server and say whether it ran; raise `NoServer` while somebody uses it, unless
    `force`."""
    home = Home.at(data_dir)
    if not home.path.is_dir():
        return False
    refuse_unless_ours(home.path)  # the watcher's process group is read from there
    with home.turn(patience=patience), ExitStack() as stack:
        if line := call(home.address()):
            stack.enter_context(closing(line))
            if not force and line.users():
                time.sleep(0.1)  # another process may only have had a look
                if users := line.users():
                    raise NoServer(
                        f"the server in {home.path} is in use ({users} connected): end its users first, or force it"
                    )
        watched = not is_free(home.watching)
        if watched:  # or it would start the server again
            os.killpg(int(home.watching.read_text()), signal.SIGTERM)
        if line:
            line.shut_down()
        if not (
            is_free(home.watching, patience=patience) and is_free(home.serving, patience=patience)
        ):
            raise NoServer(
                f"the server in {home.path} has not ended within {patience:g} s{home.trouble()}"
            )
    return line is not None or watched


def _server(home: Home) -> Server:
    return Server(f"unix://{quote(str(home.address()))}", home.path, str(writer_of(home)))


def _launch(home: Home, settings: Settings) -> None:
    """Start the watcher, which goes on by itself; it writes to the server's log."""
    program = find_program(writer_of(home))
    order = [str(home.path), str(program.path), json.dumps(asdict(settings))]
    home.log.touch(mode=0o600)
    with home.log.open("ab") as log:
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", WATCH, str(Path(__file__).parents[1]), *order],
            cwd=home.path,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
