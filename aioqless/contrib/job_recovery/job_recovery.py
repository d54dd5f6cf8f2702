"""JobRecovery: jobs of killed workers of this machine run again within seconds, not a minute."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from typing import Self
from urllib.parse import urlsplit

from aioqless.contrib.job_recovery.process_files import ProcessFile, lock_ended, lock_group
from aioqless.errors import NameTaken
from aioqless.runtime.log import log
from aioqless.worker.context import NOT_NOW, WorkerContext, call_until_answered

INTERVAL = 2.0  # seconds


class JobRecovery:
    """Gives the jobs of workers whose processes have ended back to their queues.

    Each worker keeps a file locked while its process lives. Workers of the same machine, user,
    Redis and namespace look for files that are no longer locked, when they start and every 2
    seconds. Redis isn't asked for anything before there is one.

    `async with` shows the others that this process lives, and takes over from those that ended.

    Args:
        context: The worker.
        id: What tells it from others of its name.
        is_named: Whether the worker has a stable name, which it gets after its predecessor is
            recovered.
    """

    def __init__(self, context: WorkerContext, id: str, *, is_named: bool) -> None:
        self._context = context
        self._id = id
        self._is_named = is_named
        self._group = group_of(context.client.url or "", context.client.namespace)
        self._file: ProcessFile | None = None

    async def __aenter__(self) -> Self:
        self._file = ProcessFile.create(self._group, self._id, self._context.name)
        try:
            if self._is_named:
                await call_until_answered(self._context, self._recover_all)
            else:
                await self._look()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.remove()

    async def run(self) -> None:
        """Look for ended processes until canceled."""
        while True:
            await asyncio.sleep(INTERVAL)
            await self._look()

    async def _look(self) -> None:
        with contextlib.suppress(*NOT_NOW):  # the next look tries again
            await self._recover_all()

    async def _recover_all(self) -> None:
        # A worker that starts under a name which is being recovered waits until that is done.
        async with lock_group(self._group) as locked:
            if not locked:
                return
            ended = lock_ended(self._group)
            with contextlib.ExitStack() as unlocking:
                for file in ended:
                    unlocking.callback(file.unlock)
                for file in ended:
                    await self._recover(file.text, file.path.name)
                    with contextlib.suppress(OSError):  # the next look finds it, and no jobs
                        file.path.unlink()

    async def _recover(self, worker: str, id: str) -> None:
        """Release the jobs of an ended worker, and its name; it stays in the list of workers."""
        store, jobs = self._context.store, 0
        try:
            while count := await store.name_lease_recover(worker=worker, id=id):
                jobs += count
            await store.name_lease_leave(worker=worker, id=id)
        except NameTaken:  # by a worker that recovers its jobs
            return
        log.info("worker.recovered", of=worker, jobs=jobs)


def group_of(url: str, namespace: str) -> str:
    """Return the group of the files of the workers of one namespace."""
    parts = urlsplit(url)
    where = (parts.netloc.rpartition("@")[2], parts.path, parts.query, namespace)
    return hashlib.sha256("\n".join(where).encode()).hexdigest()[:16]
