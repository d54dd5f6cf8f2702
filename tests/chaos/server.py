"""The Redis server: it writes to disk before it answers, and is killed, suspended and starved."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from aioqless.contrib.private_redis.server_binary import find_server_binary
from tests.server import free_port

PATIENCE = 30.0


class Server:
    """A server with its own port and folder, which can be restarted."""

    def __init__(self, folder: Path, *options: str) -> None:
        folder.mkdir()
        self._folder = folder
        self._options = options
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start the server on its data; returns when it answers."""
        command = [
            str(find_server_binary().path),
            "--bind",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--dir",
            str(self._folder),
            "--save",
            "",
        ]
        command += [
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
            "--enable-debug-command",
            "yes",
            *self._options,
        ]
        with (self._folder / "log").open("ab") as log:
            # Python ignores SIGXFSZ, and so do its child processes: to the server, a file that
            # cannot grow is a write error, as on a full disk.
            began = log.tell()
            self._process = subprocess.Popen(  # noqa: ASYNC220  it doesn't wait for it
                command, stdout=log, stderr=log, restore_signals=False
            )
        await self.until_it_answers()
        if b"short read while loading" in (self._folder / "log").read_bytes()[began:]:
            await self._rewrite_log()

    async def _rewrite_log(self) -> None:
        """Rewrite the AOF, which may be cut within a script's changes: the page on backups."""
        await self.ask("BGREWRITEAOF")
        async with asyncio.timeout(PATIENCE):
            while (await self.ask("INFO", "persistence"))["aof_rewrite_in_progress"]:  # noqa: ASYNC110  there is no event of it
                await asyncio.sleep(0.02)

    async def until_it_answers(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self.ask("PING")
                    return
                except RedisError:
                    await asyncio.sleep(0.02)

    async def ask(self, *command: Any) -> Any:
        """Send a command over its own connection."""
        async with Redis.from_url(self.url, socket_timeout=PATIENCE) as redis:
            return await redis.execute_command(*command)

    @property
    def ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def kill(self) -> None:
        """Kill the server with -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and not self.ended:
            os.kill(self._process.pid, number)

    def fill_disk(self, full: bool) -> None:
        """Limit the size of its files, or lift the limit: writes then fail as on a full disk."""
        assert self._process is not None
        largest = max(file.stat().st_size for file in self._folder.rglob("*.aof"))
        most = largest if full else resource.RLIM_INFINITY
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
