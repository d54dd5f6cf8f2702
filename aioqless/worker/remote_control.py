"""Carry out what a worker is told from outside, and answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from aioqless.errors import ScriptError
from aioqless.log import log
from aioqless.store import Store
from aioqless.worker.outage import NOT_NOW
from aioqless.worker.subscriptions import Subscription


class Obedient(Protocol):
    """What can be ordered."""

    @property
    def subscriptions(self) -> tuple[Subscription, ...]: ...
    @property
    def paused(self) -> bool: ...
    def subscribe(self, queue: str, *, limit: int | None = None, weight: int = 1) -> None: ...
    def unsubscribe(self, queue: str) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def stop(self) -> None: ...


class Orders:
    """Owns nothing: hears an order and answers it."""

    def __init__(self, store: Store, worker: Obedient) -> None:
        self._store = store
        self._verbs: dict[str, Callable[[dict[str, Any]], None]] = {
            "subscribe": lambda told: worker.subscribe(
                told["queue"], limit=told.get("limit"), weight=told.get("weight", 1)
            ),
            "unsubscribe": lambda told: worker.unsubscribe(told["queue"]),
            "quiet": lambda told: worker.pause(),
            "resume": lambda told: worker.resume(),
            "stop": lambda told: worker.stop(),
            "show": lambda told: None,
        }
        self._worker = worker

    async def obey(self, told: dict[str, Any]) -> None:
        """Do what a message says. It is refused, with the reason, where the worker's own methods
        would refuse it."""
        try:
            self._verbs[told["order"]](told)
            answer: dict[str, Any] = {
                "queues": [str(each) for each in self._worker.subscriptions],
                "paused": self._worker.paused,
            }
        except (
            ValueError,
            TypeError,
            KeyError,
        ) as refused:  # a later version's order, too, or anybody's who publishes here
            answer = {
                "refused": str(refused)
                if not isinstance(refused, KeyError)
                else f"it knows of no {refused}"
            }
        try:
            await self._store.answer(answer=told["answer"], told=msgspec.json.encode(answer))
        except (*NOT_NOW, ScriptError, KeyError, TypeError, ValueError) as error:
            log.debug("worker.reply_failed", order=told.get("order"), error=repr(error))
