"""Jobs that clients of sidekiq, exq and resque push: where they are, and how they become jobs of
ours."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from redis import exceptions

from aioqless import validation
from aioqless.client import REDIS_UNAVAILABLE, Client
from aioqless.errors import AioqlessError, QueueFull, ScriptError
from aioqless.log import log
from aioqless.worker import Imported

Format: TypeAlias = Literal["sidekiq", "exq", "resque"]

PREFIXES: dict[str, str] = {"sidekiq": "", "exq": "exq", "resque": "resque"}
MOST_PER_CALL = 100
MOST_PAGES = 10
FIRST_RETRY = {"exq": 1}  # what `retry_count` says when the first retry is to come; elsewhere 0
DEAD_EVERY = 30.0  # seconds between two looks for dead nodes of exq


@dataclass(frozen=True, kw_only=True)
class Source:
    """Another system's queues, in the same database of the same Redis. Checked when made; raises
    ValueError and TypeError.

    `prefix` is what its keys begin with, before a colon; default: that of the format. Without
    `queues`, all that it has are taken from. A job goes to the queue of the same name, with `into`
    before it."""

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
    def keys_begin(self) -> str:
        """What its keys begin with."""
        prefix = (PREFIXES[self.format] if self.prefix is None else self.prefix).removesuffix(":")
        return f"{prefix}:" if prefix else ""

    def importer(self, client: Client) -> ForeignImporter:
        """Return an importer that uses this client."""
        return ForeignImporter(client, self)

    def __str__(self) -> str:
        return f"{self.format} {self.keys_begin}{','.join(self.queues) or '*'}"


class ForeignImporter:
    """Imports the jobs of a source, as `aioqless.worker.Importer`.

    Owns how far the scans of scheduled entries have come.
    """

    def __init__(self, client: Client, source: Source) -> None:
        self._store = client.store
        self._source = source
        self._passed = {"schedule": 0, "retry": 0}
        self._told: set[str] = set()
        self._looked_for_dead = -DEAD_EVERY

    async def check(self) -> None:
        """Check that jobs can be imported in one step, which is not so in a Cluster.

        Raises:
            AioqlessError: The keys of the other system are on other nodes.
        """
        if b"cluster_enabled:1" in await self._store.connection.execute("INFO", "cluster"):
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
        answers = [await self._queue(queue) for queue in queues]
        if self._source.format != "resque":
            answers += [answer for word in self._passed for answer in await self._sorted(word)]
        if self._source.format == "exq" and time.monotonic() >= self._looked_for_dead + DEAD_EVERY:
            answers += await self._backups(queues)
        return [
            Imported(answer["taken"], answer["refused"])
            for answer in answers
            if answer["taken"] or answer["refused"]
        ]

    async def _queue(self, queue: str) -> Any:
        side = "left" if self._source.format == "resque" else "right"
        return await self._take("queue", queue=queue, side=side, count=MOST_PER_CALL)

    async def _backups(self, queues: Sequence[str]) -> list[Any]:
        """Take what dead nodes had begun; the next look follows at once if there is more."""
        nodes = await self._take("dead")
        answers = [
            await self._take("backup", node=node, count=MOST_PER_CALL, queues=queues)
            for node in nodes
        ]
        if not any(answer["more"] for answer in answers):
            self._looked_for_dead = time.monotonic()
        return answers

    async def _sorted(self, word: str) -> list[Any]:
        """A walk of some pages, which the next look goes on with."""
        answers = []
        for _ in range(MOST_PAGES):
            answer = await self._take(
                word, offset=self._passed[word], count=MOST_PER_CALL, queues=self._source.queues
            )
            answers.append(answer)
            self._passed[word] = self._passed[word] + answer["passed"] if answer["more"] else 0
            if not answer["more"]:
                break
        return answers

    async def _take(self, word: str, **arguments: Any) -> Any:
        """Take from one key. One that isn't what it is taken for, or has a name that no queue here
        can have, holds up no other."""
        try:
            where = {
                "prefix": self._source.keys_begin,
                "into": self._source.into,
                "first_retry": FIRST_RETRY.get(self._source.format, 0),
            }
            return await self._store.call("intake", word, {**where, **arguments})
        except (*REDIS_UNAVAILABLE, QueueFull):
            raise
        except (ScriptError, exceptions.ResponseError) as wrong:
            what = arguments.get("queue") or arguments.get("node", word)
            if what not in self._told:
                self._told.add(what)
                log.error(
                    "intake.unreadable", source=str(self._source), what=what, error=str(wrong)
                )
            return (
                []
                if word in ("queues", "dead")
                else {"taken": 0, "passed": 0, "refused": [], "more": False}
            )
