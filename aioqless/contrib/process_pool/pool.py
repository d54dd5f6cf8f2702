"""Run handlers with executor="process" in processes of the worker's own."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Sequence
from dataclasses import replace

import anyio
import msgspec

from aioqless.client import job_data
from aioqless.contrib.process_pool.child import Child
from aioqless.contrib.process_pool.context_vars import pack
from aioqless.contrib.process_pool.ipc import (
    Emission,
    FunctionRef,
    JobReply,
    JobRequest,
    ProgressReport,
    error_of,
    frame,
)
from aioqless.errors import ProcessDied
from aioqless.handlers import Handler, Handlers
from aioqless.runtime.log import log
from aioqless.worker.running_jobs import Run
from aioqless.worker.settings import Settings

CHECK_INTERVAL = 5.0  # seconds between checks of a process; longer while it is found suspended


class ProcessPool:
    """Starts processes when they are needed, and replaces those that died or reached their limit.

    Raises:
        ValueError: A handler can't run in a process.
    """

    def __init__(self, handlers: Handlers, settings: Settings) -> None:
        self._slots = anyio.CapacityLimiter(settings.processes)
        self._max_jobs = settings.max_jobs_per_process
        self._kill_after = settings.kill_after
        self._functions = {
            handler.klass: FunctionRef.of(handler)
            for handler in handlers
            if handler.executor == "process"
        }
        self._preloaded = pickle.dumps([*self._functions.values()]).hex()
        self._idle: list[Child] = []
        self._ending: set[asyncio.Task[None]] = set()

    async def perform(self, runs: Sequence[Run], handler: Handler[...]) -> object:
        """Let a process perform a job, or those of a bulk; return when the code has stopped.

        A cancellation is passed to the process, which is killed after `kill_after` seconds.

        Returns:
            What the handler returned.

        Raises:
            ProcessDied: The process died.
            BaseException: What the handler raised there.
        """
        function, stores_result = self._functions[handler.klass], bool(handler.result_ttl)
        run, detached = runs[0], [each.job_run.detach() for each in runs]
        variables = pack()
        with run.waiting():
            await self._slots.acquire_on_behalf_of(run)
        child = self._take()
        try:
            request = JobRequest(
                function, detached, variables, run.deadline, stores_result, handler.is_bulk
            )
            reply = await self._perform(child, runs, request)
        finally:
            self._take_back(child)
            self._slots.release_on_behalf_of(run)
        for each, data in zip(runs, reply.data, strict=False):
            if data is not None:
                each.job.data = job_data.decode(data.decode())
        if reply.lost:
            for each in runs:
                each.stop("lost")
            raise asyncio.CancelledError
        if reply.error is not None:
            raise error_of(reply.error)
        return reply.result

    async def _perform(self, child: Child, runs: Sequence[Run], request: JobRequest) -> JobReply:
        """Return the process's reply; a cancellation stops the process, not the wait for it."""
        child.stopping = False
        working = asyncio.ensure_future(self._start_and_perform(child, runs, request))
        killing: asyncio.TimerHandle | None = None
        run, deadline = runs[0], runs[0].deadline
        shortest = min(CHECK_INTERVAL, run.lock / 3)  # locks are renewed as often
        interval, seen = shortest, time.monotonic()
        while not working.done():
            try:
                if (await asyncio.wait([working], timeout=interval))[0]:
                    break
                if run.deadline != deadline:
                    deadline = run.deadline
                    child.renew_lock(deadline)
                if pid := child.suspended:
                    seconds = round(time.monotonic() - seen, 3)
                    log.warning("job.process_suspended", pid=pid, seconds=seconds)
                    interval *= 2
                else:
                    interval, seen = shortest, time.monotonic()
            except asyncio.CancelledError:
                if killing is None:
                    child.stop(run.job.stopped or "shutdown")
                    killing = asyncio.get_running_loop().call_later(self._kill_after, child.kill)
        if killing is not None:
            killing.cancel()
        try:
            return working.result()
        except ProcessDied:
            if child.stopping:
                raise asyncio.CancelledError from None
            raise

    async def _start_and_perform(
        self, child: Child, runs: Sequence[Run], request: JobRequest
    ) -> JobReply:
        jobs = {run.job.jid: run.job for run in runs}
        with runs[0].waiting():
            await child.start()
        if child.stopping:
            raise ProcessDied(0)

        def receive(message: Emission | ProgressReport) -> None:
            job = jobs.get(message.jid)
            if job is None:  # of a thread that the job before has left
                return
            if isinstance(message, Emission):
                text = message.text
                job.emit(False if text == b"false" else msgspec.Raw(text))
            else:
                job.progress(message.share, message.message)

        request = replace(request, deadline=runs[0].deadline)  # renewed while the process started
        return await child.perform(frame(request), receive)

    def _take(self) -> Child:
        """Return a process without a job; end those that died while they had none."""
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
            self._end(child)
        return Child(self._preloaded)

    def _take_back(self, child: Child) -> None:
        if child.alive and (self._max_jobs is None or child.jobs < self._max_jobs):
            self._idle.append(child)
        else:
            self._end(child)

    def _end(self, child: Child) -> None:
        ending = asyncio.ensure_future(child.end(self._kill_after))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def aclose(self) -> None:
        """End all processes, which must be idle by now."""
        while self._idle:
            self._end(self._idle.pop())
        while self._ending:
            await asyncio.wait(self._ending)
