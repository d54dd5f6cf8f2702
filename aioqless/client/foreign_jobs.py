"""Import of jobs that other systems' clients push into the same Redis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from aioqless.store import Call, Store

Part: TypeAlias = Literal["queue", "schedule", "retry", "backup", "queues", "dead"]


class ForeignJobs:
    """Imports jobs of Sidekiq, exq and Resque. A job moves in one step: it is never in both."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def take(
        self, part: Part, *, prefix: str, into: str, first_retry: int, **arguments: Any
    ) -> Any:
        """Import a batch of one part of another system, or list its queues or dead nodes.

        Args:
            part: The structure to import from; "queues" and "dead" list names.
            prefix: Prefix of the other system's keys.
            into: Prefix of the queues' names here.
            first_retry: What the other system counts before the first retry.
            arguments: Those of the part.

        Returns:
            The names, or {taken, passed, refused, more}.

        Raises:
            QueueFull: A queue here takes no more jobs.
            ScriptError: A key is not what it is taken for.
        """
        where = {"prefix": prefix, "into": into, "first_retry": first_retry}
        store = self._store
        take: dict[Part, Callable[..., Call]] = {
            "queue": store.import_queue,
            "schedule": store.import_schedule,
            "retry": store.import_retry,
            "backup": store.import_backup,
            "queues": store.import_queues,
            "dead": store.import_dead,
        }
        return await take[part](**where, **arguments)
