"""Serves an application as a process of its own, with uvicorn."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from aioqless.cli.open_file_limit import open_file_limit
from aioqless.cli.signal_handlers import stop_on_signals
from aioqless.errors import AioqlessError, require_extra

with require_extra("web"):
    import uvicorn
    from starlette.types import ASGIApp
    from uvicorn.protocols.http.h11_impl import H11Protocol


@dataclass(frozen=True)
class Address:
    """Where a server listens: a host and a port, or else a Unix socket."""

    host: str
    port: int
    path: Path | None = None

    def __str__(self) -> str:
        if self.path:
            return f"--socket {self.path}"
        return f"--host {self.host}"

    def listen(self) -> tuple[socket.socket, str]:
        """Return the listening socket, and its URL or path.

        A Unix socket is open to the user and group of the process.

        Raises:
            AioqlessError: The address is not available.
        """
        shown = f"[{self.host}]" if ":" in self.host else self.host
        try:
            if self.path:
                shown = str(self.path)
                return _listen_on_path(shown), f"unix:{shown}"
            shown = f"{shown}:{self.port}"
            family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
            listening = socket.create_server((self.host, self.port), family=family, backlog=512)
        except OSError as error:
            raise AioqlessError(f"{shown} can't be served: {error.strerror}") from None
        return listening, f"http://{shown.rpartition(':')[0]}:{listening.getsockname()[1]}"


def _listen_on_path(path: str) -> socket.socket:
    """Return a Unix socket that listens at a path, where no other server may listen."""
    with socket.socket(socket.AF_UNIX) as other, suppress(FileNotFoundError):
        try:
            other.connect(path)
        except ConnectionRefusedError:  # left by a server that was killed
            Path(path).unlink()
        else:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    listening = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o117)
    try:
        listening.bind(path)
    except OSError:
        listening.close()
        raise
    finally:
        os.umask(mask)
    listening.listen(512)
    return listening


async def serve(app: ASGIApp, address: Address, announce: Callable[[str], None]) -> None:
    """Serve until a signal; call `announce` with the URL when connections are accepted.

    Raises:
        AioqlessError: The address is not available.
    """
    listening, url = address.listen()
    announce(url)
    server = Server(uvicorn_config(app))
    stop_on_signals(server.stop)
    # what is loaded by now stays; a full collection of it would delay a request by 30 ms
    gc.freeze()
    try:
        await server.serve(sockets=[listening])
    finally:
        if address.path:
            address.path.unlink(missing_ok=True)


def uvicorn_config(app: ASGIApp) -> uvicorn.Config:
    """Return the configuration of uvicorn; applications know their proxies themselves."""
    return uvicorn.Config(
        app,
        http=TimedProtocol,
        # asyncio accepts this number at once, before the first may be closed
        backlog=max(TimedProtocol.MAX_CONNECTIONS // 4, 1),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        proxy_headers=False,
    )


class TimedProtocol(H11Protocol):
    """Closes connections that are above the limit, or whose next request takes too long.

    uvicorn waits for the rest of its headers forever.
    """

    REQUEST_TIMEOUT = 20.0  # seconds
    MAX_CONNECTIONS = min(250, (open_file_limit() or 1000) // 4)

    _deadline: asyncio.TimerHandle | None = None
    # for the rest of a request or the next one, or until the client reads more of a response
    _waiting_since: float | None = None
    _pipelines = False  # which no browser does: such a client may ask for hours of work at once

    # uvicorn's own narrows the type of asyncio's method, too
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer; if there are too many, close the one that has waited longest."""
        super().connection_made(transport)
        self._note_waiting()
        if len(self.connections) > self.MAX_CONNECTIONS:
            waiting = {
                each._waiting_since: each  # noqa: SLF001  # of the same class
                for each in self.connections
                if isinstance(each, TimedProtocol) and each._waiting_since  # noqa: SLF001
            }
            waiting[min(waiting)].transport.abort()

    def data_received(self, data: bytes) -> None:
        """Stop the timer when the headers of a request are complete."""
        super().data_received(data)
        self._note_waiting()

    def pause_writing(self) -> None:
        """Note that the client reads no more."""
        super().pause_writing()
        self._note_waiting()

    def resume_writing(self) -> None:
        """Note that the client reads on."""
        super().resume_writing()
        self._note_waiting()

    def on_response_complete(self) -> None:
        """Start the timer for the next request."""
        super().on_response_complete()
        self._pipelines = not self.cycle.response_complete
        self._note_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer."""
        if self._deadline:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _note_waiting(self) -> None:
        """Note since when it waits for the client; the timer is for headers alone."""
        answers = self.cycle is not None and not self.cycle.response_complete
        if answers and not (self.cycle.more_body or self.flow.write_paused or self._pipelines):
            self._waiting_since = None
        elif self._waiting_since is None:
            self._waiting_since = self.loop.time()
        if answers and self._deadline:
            self._deadline.cancel()
            self._deadline = None
        elif not answers and self._deadline is None:
            self._deadline = self.loop.call_later(self.REQUEST_TIMEOUT, self.transport.close)


class Server(uvicorn.Server):
    """A uvicorn server that leaves signals to the command line."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

    def stop(self) -> None:
        """Shut down gracefully."""
        self.should_exit = True
