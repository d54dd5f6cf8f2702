"""Imports jobs that clients of Sidekiq, exq and Resque push."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from redis import exceptions

from aioqless import validation
from aioqless.client import REDIS_UNAVAILABLE, Client
from aioqless.contrib.foreign_queues.commands import ForeignQueuesCommands
from aioqless.errors import AioqlessError, QueueFull, ScriptError
from aioqless.runtime.log import log
from aioqless.worker import Imported

Format: TypeAlias = Literal["sidekiq", "exq", "resque"]
Part: TypeAlias = Literal["queue", "schedule", "retry", "backup", "queues", "dead"]

PREFIXES: dict[str, str] = {"sidekiq": "", "exq": "exq", "resque": "resque"}
MAX_PER_CALL = 100
MAX_PAGES = 10
FIRST_RETRY = {"exq": 1}  # its `retry_count` before the first retry; elsewhere 0
DEAD_NODES_INTERVAL = 30.0  # seconds between two searches for dead nodes of exq


@dataclass(frozen=True, kw_only=True)
class ForeignQueues:
    """Queues of another system, in the same database of the same Redis.

    Args:
        format: The other system.
        prefix: The prefix of its keys, before a colon; default: that of the system.
        queues: The queues to import from; default: all.
        into: Prefix of the queues' names here; without one they have the same names.

    Raises:
        ValueError: An unknown format, or an invalid name.
        TypeError: Queues that are not a list.
    """

    format: Format
    prefix: str | None = None
    queues: Sequence[str] = ()
    into: str = ""

    def __post_init__(self) -> None:
        if self.format not in get_args(Format):
            raise ValueError(
                f"format must be one of {', '.join(get_args(Format))}, not {self.format!r}"
            )
        for name in ("prefix", "into"):
            if value := getattr(self, name):
                validation.check_name(name, value)
        validation.check_names("queues", self.queues)

    @property
    def key_prefix(self) -> str:
        """The prefix of its keys, with the colon."""
        prefix = (PREFIXES[self.format] if self.prefix is None else self.prefix).removesuffix(":")
        return f"{prefix}:" if prefix else ""

    def importer(self, client: Client) -> ForeignImporter:
        """Return an importer that uses this client."""
        return ForeignImporter(client, self)

    def __str__(self) -> str:
        return f"{self.format} {self.key_prefix}{','.join(self.queues) or '*'}"


class ForeignImporter:
    """Imports jobs, as an `aioqless.worker.Importer`.

    Owns how far the scans of scheduled entries have come.
    """

    def __init__(self, client: Client, source: ForeignQueues) -> None:
        self._client = client
        self._source = source
        self._offsets: dict[Part, int] = {"schedule": 0, "retry": 0}
        self._logged: set[str] = set()
        self._searched_dead_nodes = -DEAD_NODES_INTERVAL

    async def check(self) -> None:
        """Check that jobs can be imported in one step, which is not so in a Cluster.

        Raises:
            AioqlessError: The keys of the other system are on other nodes.
        """
        if (await self._client.server.info()).cluster:
            raise AioqlessError(
                f"jobs of {self._source.format} can't be taken in a Redis Cluster: "
                "its keys are on other nodes than ours"
            )

    async def import_batch(self) -> list[Imported]:
        """Import a batch of everything that is there; return an empty list when there is nothing.

        Raises:
            QueueFull: A queue here takes no more jobs.
        """
        queues = list(self._source.queues) or await self._take("queues")
        answers = [await self._import_queue(queue) for queue in queues]
        if self._source.format != "resque":
            answers += [
                answer for part in self._offsets for answer in await self._import_sorted(part)
            ]
        if (
            self._source.format == "exq"
            and time.monotonic() >= self._searched_dead_nodes + DEAD_NODES_INTERVAL
        ):
            answers += await self._import_backups(queues)
        return [
            Imported(answer["taken"], answer["refused"])
            for answer in answers
            if answer["taken"] or answer["refused"]
        ]

    async def _import_queue(self, queue: str) -> Any:
        side = "left" if self._source.format == "resque" else "right"
        return await self._take("queue", queue=queue, side=side, count=MAX_PER_CALL)

    async def _import_backups(self, queues: Sequence[str]) -> list[Any]:
        """Import the jobs that dead nodes were running; search again at once if there are more."""
        nodes = await self._take("dead")
        answers = [
            await self._take("backup", node=node, count=MAX_PER_CALL, queues=queues)
            for node in nodes
        ]
        if not any(answer["more"] for answer in answers):
            self._searched_dead_nodes = time.monotonic()
        return answers

    async def _import_sorted(self, part: Part) -> list[Any]:
        """Import due entries of a sorted set, some pages at a time."""
        answers = []
        for _ in range(MAX_PAGES):
            answer = await self._take(
                part, offset=self._offsets[part], count=MAX_PER_CALL, queues=self._source.queues
            )
            answers.append(answer)
            self._offsets[part] = self._offsets[part] + answer["passed"] if answer["more"] else 0
            if not answer["more"]:
                break
        return answers

    async def _take(self, part: Part, **arguments: Any) -> Any:
        """Import from one key; log a key of another type or with an invalid name, and skip it."""
        commands = ForeignQueuesCommands(self._client.store)
        take: dict[Part, Callable[..., Awaitable[Any]]] = {
            "queue": commands.import_queue,
            "schedule": commands.import_schedule,
            "retry": commands.import_retry,
            "backup": commands.import_backup,
            "queues": commands.import_queues,
            "dead": commands.import_dead,
        }
        try:
            return await take[part](
                prefix=self._source.key_prefix,
                into=self._source.into,
                first_retry=FIRST_RETRY.get(self._source.format, 0),
                **arguments,
            )
        except (*REDIS_UNAVAILABLE, QueueFull):
            raise
        except (ScriptError, exceptions.ResponseError) as error:
            what = arguments.get("queue") or arguments.get("node", part)
            if what not in self._logged:
                self._logged.add(what)
                log.error(
                    "import.unreadable", source=str(self._source), what=what, error=str(error)
                )
            return (
                []
                if part in ("queues", "dead")
                else {"taken": 0, "passed": 0, "refused": [], "more": False}
            )
