"""Remote control: carry out commands of `client.workers`, and answer them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from aioqless.errors import ScriptError
from aioqless.runtime.log import log
from aioqless.store import Store
from aioqless.worker.outage import NOT_NOW
from aioqless.worker.subscriptions import Subscription


class Controllable(Protocol):
    """What remote commands act on: a worker."""

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """What it serves."""

    @property
    def paused(self) -> bool:
        """Whether it is paused."""

    def subscribe(self, queue: str, *, limit: int | None = None, weight: int = 1) -> None:
        """Serve a queue."""

    def unsubscribe(self, queue: str) -> None:
        """Stop serving a queue."""

    def pause(self) -> None:
        """Take no new jobs."""

    def resume(self) -> None:
        """Take jobs again."""

    def stop(self) -> None:
        """Begin a graceful shutdown."""

    def stop_at_once(self) -> None:
        """Begin a shutdown that releases running jobs."""


class RemoteControl:
    """Handles remote commands."""

    def __init__(self, store: Store, worker: Controllable) -> None:
        self._store = store
        self._worker = worker
        self._commands: dict[str, Callable[[dict[str, Any]], None]] = {
            "subscribe": lambda message: worker.subscribe(
                message["queue"], limit=message.get("limit"), weight=message.get("weight", 1)
            ),
            "unsubscribe": lambda message: worker.unsubscribe(message["queue"]),
            "pause": lambda _: worker.pause(),
            "resume": lambda _: worker.resume(),
            "stop": lambda _: worker.stop(),
            "show": lambda _: None,
        }

    async def handle(self, message: dict[str, Any]) -> None:
        """Carry out a command and answer it; what the worker's method refuses is the answer."""
        try:
            self._commands[message["command"]](message)
            answer: dict[str, object] = {
                "queues": [str(each) for each in self._worker.subscriptions],
                "paused": self._worker.paused,
            }
        except (ValueError, TypeError) as refused:
            answer = {"refused": str(refused)}
        except KeyError as missing:  # a later version's command, or a message of unknown origin
            answer = {"refused": f"it knows of no {missing}"}
        try:
            await self._store.remote_reply(
                answer=message["answer"], told=msgspec.json.encode(answer)
            )
        except (*NOT_NOW, ScriptError, KeyError, TypeError, ValueError) as error:
            log.debug("worker.reply_failed", command=message.get("command"), error=repr(error))
