"""The qless-py client."""

from __future__ import annotations

import importlib
import pkgutil
import time
import warnings
from typing import Any

SCRIPT = ("qless", "qless-core/qless.lua")
# Its script adds a function to Lua's own table `table`, which Redis 7 refuses. With a copy of the
# table it runs unchanged.
OF_REDIS_7 = b"local table = setmetatable({}, {__index = table})\n"


def peer(url: str, worker: str = "peer") -> Any:
    """Return a live client of a Redis as a named worker."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        qless: Any = importlib.import_module("qless")
    client = qless.Client(url, hostname=worker)
    client._lua = client.redis.register_script(OF_REDIS_7 + (pkgutil.get_data(*SCRIPT) or b""))  # noqa: SLF001  # of another library
    return client


def at(client: Any, later: float, command: str, *arguments: Any) -> Any:
    """Return the reply of a command of its script at a later time of its clock."""
    return client._lua(keys=[], args=[command, repr(time.time() + later), *arguments])  # noqa: SLF001


class Note:
    """A job of both clients: a class of qless-py, a klass for our handler."""

    @staticmethod
    def process(job: Any) -> None:
        job.client.redis.rpush("ran", f"{job.jid} {job.client.worker_name}")
        job.complete()


def work(url: str, worker: str, queues: list[str], folder: str) -> None:
    """Work as qless-py's own worker does, until killed."""
    client = peer(url, worker)
    serial: Any = importlib.import_module("qless.workers.serial")
    serial.SerialWorker(queues, client, interval=0.05, sandbox=folder).run()


if __name__ == "__main__":
    import sys

    work(sys.argv[1], sys.argv[2], sys.argv[3].split(","), sys.argv[4])
