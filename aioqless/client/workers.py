"""Workers: which there are, which jobs they hold, and remote commands to running ones."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from functools import partial

import msgspec
from redis.asyncio import Redis

from aioqless import validation
from aioqless.client.job.summaries import WorkerSummary
from aioqless.errors import CommandRefused
from aioqless.redis.encoding import decode_json
from aioqless.redis.pubsub import subscribe
from aioqless.store import Call, Store
from aioqless.validation import Seconds

TIMEOUT = 5.0  # seconds for a worker to answer


class WorkerCounts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Number of jobs that a worker holds.

    Attributes:
        name: Name of the worker.
        jobs: Jobs it holds with a valid lock.
        stalled: Jobs it holds with an expired lock.
        seen: When it was last seen, in seconds since 1970.
        alive: Whether its process lives; None if it doesn't say, as workers of other qless clients
            and people don't. One that stops is not listed any more, so False means that it died.
        queues: Names and patterns of the queues it serves; None if it doesn't say.
    """

    name: str
    jobs: int
    stalled: int
    seen: float = 0.0
    alive: bool | None = None
    queues: list[str] | None = None


class WorkerJobs(msgspec.Struct, frozen=True, kw_only=True):
    """The jids of the jobs that a worker holds.

    Attributes:
        jobs: Those with a valid lock.
        stalled: Those with an expired lock.
    """

    jobs: list[str]
    stalled: list[str]


class WorkerState(msgspec.Struct, frozen=True, kw_only=True):
    """What a running worker answers to a remote command.

    Attributes:
        queues: Subscriptions of the worker, such as `mail` or `reports=4`.
        paused: Whether it pops no jobs.
        stack: Where the code of the job is that `stack` asks for.
    """

    queues: list[str]
    paused: bool
    stack: str = ""


class Workers:
    """Workers as Redis knows them, by pops and heartbeats, and remote commands to a running one.

    A command applies until the worker ends: a restarted one has its own settings again. Each
    command returns the state of the worker after it, and raises NoSuchWorker if no worker listens
    under the name, or CommandRefused if it refuses or doesn't answer in time.
    """

    def __init__(self, redis: Redis, store: Store, *, timeout: float = TIMEOUT) -> None:
        self._redis = redis
        self._store = store
        self._timeout = timeout

    async def counts(self) -> list[WorkerCounts]:
        """Return how many jobs each worker holds, the one seen last first."""
        return msgspec.convert(await self._store.workers(), list[WorkerCounts])

    async def jobs(self, name: str) -> WorkerJobs:
        """Return the jids of the jobs that a worker holds.

        Args:
            name: Name of the worker.
        """
        return msgspec.convert(await self._store.workers(worker=name), WorkerJobs)

    async def working(self, *names: str, most: int = 3) -> list[WorkerSummary]:
        """Return summaries of workers.

        Args:
            names: Names of workers, at most 100.
            most: Maximum number of jobs shown of each.
        """
        records = await self._store.working(workers=names, most=most)
        return [WorkerSummary.from_record(record) for record in records]

    async def deregister(self, *workers: str) -> None:
        """Remove workers from the list of known workers.

        Args:
            workers: Names of workers.
        """
        await self._store.deregister(workers=workers)

    async def show(self, name: str, *, timeout: Seconds | None = None) -> WorkerState:
        """Return what a running worker subscribes to, and whether it is paused.

        Args:
            name: Name of the worker.
            timeout: Time to wait for its answer; default: 5 s.
        """
        return await self._command(name, "show", self._store.remote_control_show, timeout)

    async def stack(self, name: str, jid: str, *, timeout: Seconds | None = None) -> str:
        """Return the stack of a job that a worker runs, the innermost frame last.

        Of a job in another process it has the frames of the worker, which waits for it.

        Args:
            name: Name of the worker.
            jid: Jid of the job.
            timeout: Time to wait for its answer; default: 5 s.
        """
        send = partial(self._store.remote_control_stack, jid=jid)
        return (await self._command(name, "stack", send, timeout)).stack

    async def subscribe(
        self, name: str, queue: str, *, limit: int | None = None, weight: int | None = None
    ) -> WorkerState:
        """Subscribe a worker to a queue, or change the limit and weight of a subscription.

        Args:
            name: Name of the worker.
            queue: Name of the queue, or a pattern.
            limit: Maximum number of its jobs that the worker runs at once.
            weight: Share of its jobs among those of other queues.
        """
        validation.check_name("queue", queue)
        send = partial(
            self._store.remote_control_subscribe, queue=queue, limit=limit, weight=weight
        )
        return await self._command(name, "subscribe", send)

    async def unsubscribe(self, name: str, queue: str) -> WorkerState:
        """Unsubscribe a worker from a queue. Running jobs are not affected.

        Args:
            name: Name of the worker.
            queue: Name of the queue, or a pattern.
        """
        send = partial(self._store.remote_control_unsubscribe, queue=queue)
        return await self._command(name, "unsubscribe", send)

    async def pause(self, name: str) -> WorkerState:
        """Keep a worker from popping until `resume`. Running jobs are not affected.

        Args:
            name: Name of the worker.
        """
        return await self._command(name, "pause", self._store.remote_control_pause)

    async def resume(self, name: str) -> WorkerState:
        """Let a worker pop again.

        Args:
            name: Name of the worker.
        """
        return await self._command(name, "resume", self._store.remote_control_resume)

    async def stop(self, name: str) -> WorkerState:
        """Shut a worker down gracefully. One of several processes is replaced.

        Args:
            name: Name of the worker.
        """
        return await self._command(name, "stop", self._store.remote_control_stop)

    async def _command(
        self,
        worker: str,
        command: str,
        send: Callable[..., Call[int]],
        timeout: Seconds | None = None,
    ) -> WorkerState:
        seconds = self._timeout if timeout is None else validation.check_seconds("timeout", timeout)
        answer = secrets.token_hex(8)
        async with subscribe(self._redis, f"{self._store.namespace}:x:reply:{answer}") as messages:
            await send(worker=worker, channel=answer)
            try:
                async with asyncio.timeout(seconds):
                    _, payload = await anext(messages)
            except TimeoutError:
                raise CommandRefused(
                    f"worker {worker!r} received {command} and did not answer within {seconds} s: "
                    "its event loop is blocked, or it is not an aioqless worker. It may still "
                    "carry it out"
                ) from None
        reply = decode_json(payload)
        if refused := reply.get("refused"):
            raise CommandRefused(f"worker {worker!r} refused to {command}: {refused}")
        return msgspec.convert(reply, WorkerState)
