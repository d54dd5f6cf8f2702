"""Imports jobs that clients of Sidekiq, exq and Resque push."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from redis import exceptions

from aioqless import validation
from aioqless.client import REDIS_UNAVAILABLE, Client
from aioqless.contrib.foreign_queues.generated_commands import ForeignQueuesCommands
from aioqless.errors import AioqlessError, QueueFull, ScriptError
from aioqless.runtime.log import log
from aioqless.runtime.tasks import wait_for_event
from aioqless.worker import WorkerContext
from aioqless.worker.context import NOT_NOW, Outage

Format: TypeAlias = Literal["sidekiq", "exq", "resque"]
Part: TypeAlias = Literal["queue", "schedule", "retry", "backup", "queues", "dead"]

PREFIXES: dict[str, str] = {"sidekiq": "", "exq": "exq", "resque": "resque"}
MAX_PER_CALL = 100
MAX_PAGES = 10
FIRST_RETRY = {"exq": 1}  # its `retry_count` before the first retry; elsewhere 0
PAUSE_WHEN_FULL = 5.0  # seconds
DEAD_NODES_INTERVAL = 30.0  # seconds between two searches for dead nodes of exq


@dataclass(kw_only=True)
class ForeignQueues:
    """Queues of another system, in the same database of the same Redis: a part of a worker.

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
    _loop: ImportLoop | None = field(default=None, init=False, repr=False, compare=False)

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

    @property
    def caught_up(self) -> bool:
        """Whether the jobs found at the start are imported, or can't be at present."""
        return self._loop is not None and self._loop.caught_up

    async def run(self, context: WorkerContext) -> None:
        """Import beside the jobs of a worker.

        Raises:
            AioqlessError: This Redis does not allow it, as a Cluster does not.
        """
        self._loop = ImportLoop(context.client, self, context.outage, context.settings.poll)
        await self._loop.run()

    def __str__(self) -> str:
        return f"{self.format} {self.key_prefix}{','.join(self.queues) or '*'}"


@dataclass(frozen=True)
class Imported:
    """What one batch brought.

    Args:
        jobs: How many entries became jobs.
        refused: The entries that were set aside, each with `source`, `jid` and `why`.
    """

    jobs: int = 0
    refused: list[dict[str, Any]] = field(default_factory=list)


class ForeignImporter:
    """Imports jobs; each entry leaves its queue in one step with becoming a job.

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
        side = "left" if self._source.format == "resque" else "right"
        answers = [
            await self._take("queue", queue=queue, side=side, count=MAX_PER_CALL)
            for queue in queues
        ]
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
        commands = ForeignQueuesCommands(self._client.internals.store)
        try:
            return await getattr(commands, f"import_{part}")(
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


class ImportLoop:
    """Polls one source. Any number may poll the same one."""

    def __init__(
        self, client: Client, source: ForeignQueues, outage: Outage, poll: float = 1.0
    ) -> None:
        self.caught_up = False  # the jobs found at the start are imported, or can't be at present
        self._importer = ForeignImporter(client, source)
        self._source = source
        self._outage = outage
        self._poll = poll
        self._checked = False
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Let `run` return after the call under way."""
        self._stopping.set()

    async def run(self) -> None:
        """Import until stopped.

        Raises:
            AioqlessError: This Redis does not allow it, as a Cluster does not.
        """
        while not self._stopping.is_set():
            pause = await self._import_batch()
            await wait_for_event(self._stopping, pause)

    async def run_once(self) -> int:
        """Import all that is there; return how many jobs there are of it.

        Raises:
            QueueFull: A queue here takes no more jobs.
            redis.exceptions.RedisError: Redis can't be reached.
        """
        await self._importer.check()
        jobs = 0
        while batch := await self._importer.import_batch():
            self._log(batch)
            jobs += sum(each.jobs for each in batch)
        return jobs

    async def _import_batch(self) -> float:
        """Import one batch; return the seconds until the next."""
        asked = time.monotonic()
        try:
            if not self._checked:
                await self._importer.check()
                self._checked = True
            batch = await self._importer.import_batch()
        except NOT_NOW as error:
            return self._outage.record_failure(error, asked)
        except QueueFull as full:
            log.warning("import.blocked", source=str(self._source), error=str(full))
            self.caught_up = True
            return PAUSE_WHEN_FULL
        self._outage.record_success(permitted=True)
        self._log(batch)
        self.caught_up = self.caught_up or not batch
        return 0 if batch else self._poll

    def _log(self, batch: list[Imported]) -> None:
        if jobs := sum(each.jobs for each in batch):
            log.info("import.completed", source=str(self._source), jobs=jobs)
        for each in batch:
            for refused in each.refused:
                log.error(
                    "import.rejected", key=refused["source"], jid=refused["jid"], why=refused["why"]
                )
