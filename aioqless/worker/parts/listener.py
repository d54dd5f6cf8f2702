"""Messages to this worker: lost locks, ready work, earlier ticks, remote commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from redis import exceptions

from aioqless.errors import ScriptError
from aioqless.redis.encoding import decode_text
from aioqless.redis.pubsub import read_event, subscribe
from aioqless.runtime.log import log
from aioqless.store import Store
from aioqless.worker.context import NOT_NOW, WorkerContext
from aioqless.worker.lock_renewer import LockRenewer
from aioqless.worker.parts.scheduler import Scheduler
from aioqless.worker.poller import Poller
from aioqless.worker.running_jobs import RunningJobs
from aioqless.worker.shared import Shared
from aioqless.worker.subscriptions import Subscription
from aioqless.worker.watchdog import stack_of

PAUSE = 1.0
# Seconds without jobs after which the log channel is worth its subscription. A worker that gets one
# job at a time would subscribe for each.
QUIET = 0.2
# How the messages of our own puts begin, which wake workers by another channel: see events.lua.
# Scripts of live clients leave the order of fields to cjson, which begins with the jid.
OWN = b'{"event":'


class Listener:
    """Owns the subscription. Messages lost while it is broken are made up for by polling."""

    def __init__(
        self,
        context: WorkerContext,
        renewer: LockRenewer,
        poller: Poller,
        remote_control: RemoteControl,
        running: RunningJobs,
        *,
        scheduler: Scheduler | None = None,
    ) -> None:
        namespace = context.client.namespace
        self._redis = context.client.redis
        self._own = f"{namespace}:w:{context.name}"
        self._ready = f"{namespace}:x:ready"
        self._retimed = f"{namespace}:x:ticks-changed"
        self._log = f"{namespace}:log"
        self._renewer = renewer
        self._poller = poller
        self._remote_control = remote_control
        self._running = running
        self._scheduler = scheduler

    @property
    def channels(self) -> list[str]:
        """The channels of messages to this worker."""
        return [self._own, self._ready, *([self._retimed] if self._scheduler else [])]

    async def run(self) -> None:
        """Listen until canceled.

        While there is nothing to do for a while, also to the log channel: other qless clients
        announce their puts only there, among everything else that happens.
        """
        async with asyncio.TaskGroup() as both:
            both.create_task(self._listen(*self.channels))
            both.create_task(self._listen(self._log, while_quiet=True))

    async def _listen(self, *channels: str, while_quiet: bool = False) -> None:
        while True:
            if while_quiet:
                await self._wait_until_quiet()
            try:
                async with subscribe(self._redis, *channels) as messages:
                    self.catch_up(channels)
                    async for channel, payload in messages:
                        await self.handle(channel, payload)
                        if while_quiet and self._poller.quiet_for < QUIET:
                            break
            except exceptions.RedisError as error:
                log.debug("listener.failed", error=str(error))
                await asyncio.sleep(PAUSE)

    async def _wait_until_quiet(self) -> None:
        await self._poller.idle.wait()
        while (left := QUIET - self._poller.quiet_for) > 0:
            await asyncio.sleep(left)
            await self._poller.idle.wait()

    def catch_up(self, channels: Sequence[str]) -> None:
        """Make up for messages from before the subscription existed."""
        self._poller.wake()
        if self._own in channels:  # messages about all locks may have been missed
            self._renewer.check(*self._running.by_jid)
            for run in self._running.by_jid.values():
                run.job_run.wake_all()
            if self._scheduler:
                self._scheduler.wake()

    async def handle(self, channel: str, payload: bytes) -> None:
        """Do what a message asks for."""
        if channel == self._ready:
            note = self._poller.wake if payload.startswith(b"+") else self._poller.note_taken
            note(decode_text(payload[1:]))
        elif channel == self._log:
            if not payload.startswith(OWN) and (b'"put"' in payload or b'"advanced"' in payload):
                event = read_event(payload)
                queue = event.get("to") or event.get("queue")
                self._poller.wake(queue if isinstance(queue, str) else None)
        elif channel == self._retimed and self._scheduler:
            self._scheduler.wake()
        else:
            match message := read_event(payload):
                # The lock may only have expired: within the grace period it can still be renewed.
                case {"event": "canceled" | "lock_lost", "jid": str(jid)}:
                    self._renewer.check(jid)
                case {"event": "signaled", "jid": str(jid), "name": str(name)}:
                    if run := self._running.by_jid.get(jid):
                        run.job_run.wake(name)
                case {"event": "remote_control"}:
                    await self._remote_control.handle(message)


class RemoteControl:
    """Handles remote commands."""

    def __init__(self, store: Store, shared: Shared) -> None:
        self._store = store
        self._lifecycle, self._running = lifecycle, running = shared.lifecycle, shared.running
        self._commands: dict[str, Callable[[dict[str, Any]], None]] = {
            "subscribe": lambda message: lifecycle.subscribe(
                Subscription(message["queue"], message.get("limit"), message.get("weight", 1))
            ),
            "unsubscribe": lambda message: lifecycle.unsubscribe(message["queue"]),
            "pause": lambda _: running.pause(),
            "resume": lambda _: running.resume(),
            "stop": lambda _: shared.stop(),
            "show": lambda _: None,
            "stack": lambda _: None,
        }

    def _read_stack(self, jid: str) -> str:
        if not (run := self._running.by_jid.get(jid)):
            raise ValueError(f"it doesn't run job {jid}")
        return stack_of(run, asyncio.get_running_loop())

    async def handle(self, message: dict[str, Any]) -> None:
        """Carry out a command and answer it; what is refused is the answer."""
        try:
            self._commands[message["command"]](message)
            answer: dict[str, object] = {
                "queues": [str(each) for each in self._lifecycle.subscriptions],
                "paused": self._running.paused,
            }
            if message["command"] == "stack":
                answer["stack"] = self._read_stack(message["jid"])
        except (ValueError, TypeError) as refused:
            answer = {"refused": str(refused)}
        except KeyError as missing:  # a later version's command, or a message of unknown origin
            answer = {"refused": f"it knows of no {missing}"}
        try:
            await self._store.remote_reply(
                channel=message["answer"], reply=msgspec.json.encode(answer)
            )
        except (*NOT_NOW, ScriptError, KeyError, TypeError, ValueError) as error:
            log.debug("worker.reply_failed", command=message.get("command"), error=repr(error))
