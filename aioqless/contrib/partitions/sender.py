"""PartitionedSender: gives each new job its partition, and puts it there."""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import msgspec

from aioqless.client.generated_jid import generate_jid
from aioqless.client.job.backend import JobBackend
from aioqless.client.new_job import NewJob, encode_job
from aioqless.client.put_options import FlowOptions
from aioqless.client.put_sender import PutHook, PutSender, SendFlow
from aioqless.client.workflows import Flow, Step, lay_out
from aioqless.contrib.partitions.routing import (
    common_partition,
    generate_jid_in,
    keys_of,
    partition_of,
    recurring_jid,
)
from aioqless.contrib.partitions.store import PartitionedStore
from aioqless.store import PutFlowRow, PutManyRow
from aioqless.validation import Seconds

# Jobs without keys that are put at the same time share a partition, and so a call, which costs
# Redis as much as three jobs. Few of them don't: each partition has its part of a queue's limit.
MOST_TOGETHER = 32
TOGETHER = 0.001  # seconds
BURST_ENDS = 1.0  # seconds after the last put


class PartitionedSender(PutSender):
    """Encodes jobs and sends each to its partition, with a sender for each.

    A job is in the partition of its jid, with all its keys and all jobs that it depends on. A jid
    that the caller doesn't choose is generated to fit them; what can't be in one partition is
    refused before anything is written. Jobs without keys go to all partitions in turn.
    """

    def __init__(self, backend: JobBackend, on_put: Sequence[PutHook] = ()) -> None:
        super().__init__(backend, on_put)
        stores = cast(PartitionedStore, backend.store).stores
        self._count = len(stores)
        self._senders = [PutSender(replace(backend, store=each)) for each in stores]
        self._turns = itertools.cycle(random.sample(range(self._count), self._count))
        self._turn = 0  # the partition of jobs without keys
        self._turn_left = 0  # how many more of them it gets
        self._turn_ends = 0.0
        self._burst = 0  # how many were put without a pause

    def encode(self, job: NewJob) -> PutManyRow:
        """Check and encode a job, and give it a jid of the partition of its keys.

        Raises:
            ValueError: Its jid, keys and dependencies belong to several partitions.
        """
        row = super().encode(job)
        names = _names(row)
        if job.options.get("jid") is not None:
            common_partition([row["jid"], *names], self._count)
            return row
        partition = common_partition(names, self._count) if names else self._next_partition()
        return {**row, "jid": generate_jid_in(partition, self._count, row["jid"])}

    async def put_flow(
        self, flow: Step, queue: str | None, wait: Seconds, options: FlowOptions
    ) -> Flow:
        """Put a workflow, with all its jobs in one partition: of `once`, if that is given."""
        names: list[str] = []
        if once := options.get("once"):
            options = {**options, "once": recurring_jid(once, self._count)}
        made: set[str] = set()

        def make_jid() -> str:
            made.add(jid := generate_jid())
            return jid

        for _, job in lay_out(flow, queue, options, make_jid)[0]:
            own = [str(job.options.get("jid")), *_names(encode_job(job, sys.maxsize))]
            names += [name for name in own if name not in made]
        home = common_partition(names, self._count) if names else random.randrange(self._count)
        laid_out = lay_out(flow, queue, options, partial(generate_jid_in, home, self._count))
        return await self.put_laid_out(*laid_out, wait)

    async def put_row(self, queue: str, job: PutManyRow, wait: Seconds) -> str:
        """Put one job; return its jid."""
        return await self._sender_of(job).put_row(queue, job, wait)

    async def put_rows(
        self, queue: str, jobs: Sequence[PutManyRow], wait: Seconds, *, keep_existing: bool = False
    ) -> list[str | Exception]:
        """Put jobs, those of each partition in calls of a bounded size.

        Jobs of a partition that can't be reached are answered with the error, as refused ones are,
        and so are jobs that were encoded elsewhere, with a jid of another partition than their
        keys.
        """
        answers: list[str | Exception] = [""] * len(jobs)
        homes: dict[int, list[int]] = {}
        for number, job in enumerate(jobs):
            try:
                home = common_partition([job["jid"], *_names(job)], self._count)
                homes.setdefault(home, []).append(number)
            except ValueError as error:
                answers[number] = error
        puts = (
            self._senders[home].put_rows(
                queue, [jobs[number] for number in own], wait, keep_existing=keep_existing
            )
            for home, own in homes.items()
        )
        replies = await asyncio.gather(*puts, return_exceptions=True)
        for own, reply in zip(homes.values(), replies, strict=True):
            if isinstance(reply, BaseException):
                if len(homes) == 1 or not isinstance(reply, Exception):
                    raise reply  # such as a full Redis, or a refused password
                reply = [reply] * len(own)  # noqa: PLW2901
            for number, answer in zip(own, reply, strict=True):
                answers[number] = answer
        return answers

    async def put_flow_rows(
        self, jobs: Sequence[PutFlowRow], wait: Seconds, send: SendFlow | None = None
    ) -> str | None:
        """Put jobs in one step: all of them, or none."""
        return await self._sender_of(jobs[0]).put_flow_rows(jobs, wait, send)

    def _sender_of(self, job: PutManyRow | PutFlowRow) -> PutSender:
        return self._senders[partition_of(job["jid"], self._count)]

    def _next_partition(self) -> int:
        """Return the partition of a job without keys."""
        now = time.monotonic()
        if not self._turn_left or now > self._turn_ends:
            if now > self._turn_ends + BURST_ENDS:
                self._burst = 0
            self._turn, self._turn_ends = next(self._turns), now + TOGETHER
            self._turn_left = min(MOST_TOGETHER, 1 + self._burst // self._count)
        self._turn_left -= 1
        self._burst += 1
        return self._turn


def _names(job: PutManyRow) -> list[str]:
    """Return the keys of a job and of its branch, and the jids that it depends on."""
    branch = msgspec.json.decode(job.get("on_failure") or b"{}")
    keys = [*keys_of(job.get("constraints")), *keys_of(branch.get("constraints"))]
    return [*keys, *(job.get("depends") or ())]
