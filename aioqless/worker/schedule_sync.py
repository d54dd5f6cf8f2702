"""The recurring jobs that a worker's handlers declare, and how what Redis has is made to agree with
them."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from aioqless.client.codec import Codec
from aioqless.client.put import NewJob
from aioqless.client.recurring.cron import Cron
from aioqless.handlers import Handler, Handlers
from aioqless.log import log
from aioqless.store import Store
from aioqless.worker.subscriptions import Subscription

MOST_PER_CALL = 1000


class Declarations:
    """What the code has. Checked when made: raises ValueError, TypeError and InvalidData."""

    def __init__(
        self,
        handlers: Handlers,
        subscriptions: Sequence[Subscription],
        max_data: int,
        codec: Codec,
    ) -> None:
        queue = next((each.queue for each in subscriptions if not each.is_pattern), None)
        self._declared = {
            handler.klass: _arguments(handler, queue, max_data, codec)
            for handler in handlers
            if handler.recurs
        }
        self._schedules = {
            handler.klass: handler.recurs.schedule for handler in handlers if handler.recurs
        }
        claimed = [klass for handler in handlers for klass in (handler.klass, *handler.aliases)]
        self._others = [klass for klass in claimed if klass not in self._declared]

    async def reconcile(self, store: Store) -> str | None:
        """Make, or change, what is declared. Of what was declared before, take off that whose
        handler is here without a schedule; what no handler here claims is another program's, or
        another version's, and stays.

        Returns:
            The generation, by which `tick` finds out whether Redis has lost what was declared; None when nothing is.
        """
        generation: str | None = (
            await store.declare_begin(id=secrets.token_hex(8)) if self._declared else None
        )
        now = await store.now()
        for klass, arguments in self._declared.items():
            schedule = self._schedules[klass]
            given = {**arguments, "next": schedule.next(now)}
            if isinstance(schedule, Cron):
                done = await store.declare_cron(
                    expression=schedule.expression,
                    timezone=schedule.timezone,
                    **given,
                )
            else:
                done = await store.declare_interval(interval=schedule.seconds, **given)
            log.info("recurring.declared", recurring=klass, done=done)
        for start in range(0, len(self._others), MOST_PER_CALL):
            for jid in await store.declare_off(jids=self._others[start : start + MOST_PER_CALL]):
                log.info("recurring.dropped", recurring=jid)
        return generation


def _arguments(handler: Handler, queue: str | None, max_data: int, codec: Codec) -> dict[str, Any]:
    """What the script takes, beside the schedule. The jid is the klass, so that there is one of
    each."""
    recurs = handler.recurs
    assert recurs is not None
    if recurs.queue is None and queue is None:
        raise ValueError(
            f"{handler.klass} recurs into no queue: say queue= beside it, since this worker serves patterns only"
        )
    new = NewJob(handler, recurs.data, jid=handler.klass).arguments(max_data, codec)
    given = {name: new[name] for name in ("jid", "klass", "data", "retries", "terms")}
    return given | {
        "queue": recurs.queue or queue,
        "backlog": recurs.backlog,
        "anywhere": None if recurs.queue else "yes",
    }
