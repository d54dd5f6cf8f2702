"""Handlers with executor="process" run in processes of the worker's."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio

from aioqless.client.json_data import decoded
from aioqless.errors import ProcessDied
from aioqless.handlers import Handler, Handlers
from aioqless.worker.executors.child import Child
from aioqless.worker.executors.context_vars import packed
from aioqless.worker.executors.ipc import Answer, Order, Place, error_of, frame
from aioqless.worker.run import Run
from aioqless.worker.settings import Settings


class Processes:
    """Owns the pool: processes are started when they are needed, and replaced when they died or had
    their share of jobs."""

    def __init__(self, handlers: Handlers, settings: Settings) -> None:
        self._slots = anyio.CapacityLimiter(settings.processes)
        self._jobs = settings.max_jobs_per_process
        self._patience = settings.kill_after
        self._places = {
            handler.klass: Place.of(handler)
            for handler in handlers
            if handler.executor == "process"
        }
        self._idle: list[Child] = []
        self._ending: set[asyncio.Task[None]] = set()

    async def perform(self, run: Run, handler: Handler[...]) -> Any:
        """Let a process perform the job; returns and raises what the handler does there,
        ProcessDied when the process died of it.

        Being cancelled, it tells the process, and kills it after `kill_after` seconds. It returns
        when the code has stopped."""
        order = frame(Order(self._places[handler.klass], run.job.detached(), packed()))
        with run.waiting():
            await self._slots.acquire_on_behalf_of(run)
        child = self._free()
        try:
            answer = await self._answered(child, run, order)
        finally:
            self._take_back(child)
            self._slots.release_on_behalf_of(run)
        if answer.error is not None:
            raise error_of(answer.error)
        if answer.data is not None:
            run.job.data = decoded(answer.data.decode())
        return answer.result

    async def _answered(self, child: Child, run: Run, order: bytes) -> Answer:
        """What the process answers, in a task that nobody cancels: whoever cancels, stops the
        process."""
        child.stopping = False
        working = asyncio.ensure_future(self._begun(child, run, order))
        killing: asyncio.TimerHandle | None = None
        while not working.done():
            try:
                await asyncio.wait([working])
            except asyncio.CancelledError:
                if killing is None:
                    child.stop(run.job.stopped or "shutdown")
                    killing = asyncio.get_running_loop().call_later(self._patience, child.kill)
        if killing is not None:
            killing.cancel()
        try:
            return working.result()
        except ProcessDied:
            if child.stopping:
                raise asyncio.CancelledError from None
            raise

    async def _begun(self, child: Child, run: Run, order: bytes) -> Answer:
        with run.waiting():
            await child.start()
        if child.stopping:
            raise ProcessDied(0)
        return await child.perform(order)

    def _free(self) -> Child:
        """A process without a job. Those that died while they had none are left behind."""
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
            self._end(child)
        return Child(sorted({place.module for place in self._places.values()}))

    def _take_back(self, child: Child) -> None:
        if child.alive and (self._jobs is None or child.jobs < self._jobs):
            self._idle.append(child)
        else:
            self._end(child)

    def _end(self, child: Child) -> None:
        ending = asyncio.ensure_future(child.end(self._patience))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def aclose(self) -> None:
        """End all processes, which must be idle by now."""
        while self._idle:
            self._end(self._idle.pop())
        while self._ending:
            await asyncio.wait(self._ending)
