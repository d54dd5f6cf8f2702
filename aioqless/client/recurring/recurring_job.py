"""RecurringJob: a template of jobs and its methods; `recur` makes one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Self

from typing_extensions import Unpack

from aioqless import validation
from aioqless.client import job_data
from aioqless.client.constraints import encode_data_keys
from aioqless.client.job.backend import JobBackend
from aioqless.client.new_job import Klass, NewJob, encode_job
from aioqless.client.put_options import (
    PUT,
    RECUR,
    UPDATE,
    CheckedOptions,
    RecurOptions,
    RecurringChanges,
)
from aioqless.client.recurring.cron import Cron
from aioqless.client.recurring.schedule import limits_of, make_schedule
from aioqless.errors import AioqlessError, NoSuchJob
from aioqless.store import Json


async def recur(
    backend: JobBackend,
    job: str | Klass | NewJob,
    data: object,
    queue: str | None,
    options: RecurOptions,
) -> RecurringJob:
    """Make a recurring job, or change the one with this jid; see `Client.recur`."""
    RECUR.refuse_unknown(options)
    checked = RECUR.check(options)
    schedule = make_schedule(checked)
    given: Any = {name: value for name, value in options.items() if name in PUT.names}
    new = NewJob.of(job, data, given)
    if unknown := PUT.names - RECUR.names & new.options.keys():
        raise TypeError(f"a recurring job has no option {', '.join(sorted(unknown))}: put has")
    if new.options.get("jid") is None:
        raise TypeError(
            "recur needs a jid, such as jid='nightly-digest': the next call with this jid changes "
            "the recurring job instead of adding another one"
        )
    template: CheckedOptions = {
        "queue": validation.check_name("queue", new.choose_queue(queue)),
        **encode_job(new, backend.max_data, backend.codec),
        **limits_of(checked),
    }
    store = backend.store
    if isinstance(schedule, Cron):
        if "offset" in options:
            raise TypeError("offset goes with every: a cron expression has times of its own")
        following = schedule.next(await store.now())
        await store.recur_cron(**schedule.arguments, next=following, **template)
    else:
        offset = checked.get("offset", 0)
        await store.recur_on(**schedule.arguments, offset=offset, **template)
    record = await store.recur_get(jid=template["jid"])
    if record is None:
        raise AioqlessError(f"recurring job {template['jid']} was canceled while it was being read")
    return RecurringJob(backend, record)


_PRIVATE = {"data": "raw_data", "constraints": "_constraints"}


class RecurringJob:
    """A template of jobs, as it was when it was read.

    An instance is put whenever an interval has passed, or at the times of a cron expression.

    Attributes:
        jid: Id of the recurring job.
        klass: Klass of its instances.
        queue: Queue of its instances.
        priority: Priority of its instances.
        interval: Interval, in seconds; None with a cron expression.
        cron: Cron expression; None with an interval.
        timezone: Time zone of the cron expression.
        retries: Maximum number of retries of its instances.
        expires_in: Time after an instance is due in which it must start, in seconds; None: no
            limit.
        count: Number of instances that were put.
        raw_data: Data of its instances as Redis has it, perhaps encrypted.
        tags: Tags of its instances.
        backlog: Maximum number of missed instances to make up for, 0 for all.
        coalesce: Whether missed instances are coalesced into one.
        paused: Whether no instances are put.
        declared: When code declared it last, in seconds since 1970; None if a program made it.
        next: When the next instance is due, in seconds since 1970; None while it is paused, and
            when it has ended.
        until: When it ends, in seconds since 1970; None: never.
        max_runs: Number of instances after which it ends; None: no limit.
        runs_left: How many of them are left; None: no limit.
        jitter: Maximum random delay of each instance, in seconds.
        ended: Whether it has ended. It stays until it is canceled; another `until` or `max_runs`
            lets it continue.
    """

    jid: str
    klass: str
    queue: str
    priority: float
    interval: float | None
    cron: str | None
    timezone: str | None
    retries: int
    expires_in: float | None
    count: int
    raw_data: str
    tags: list[str]
    backlog: int
    coalesce: bool
    paused: bool
    declared: float | None
    next: float | None
    until: float | None
    max_runs: int | None
    runs_left: int | None
    jitter: float
    ended: bool
    _constraints: str | None  # of its instances, as the scripts store them

    def __init__(self, backend: JobBackend, record: Mapping[str, Json]) -> None:
        """Make it of what Redis returned; `client.recurring.get` does."""
        self._backend = backend
        self._store = backend.store
        self._load(record)

    def _load(self, record: Mapping[str, Json]) -> None:
        for name, value in record.items():
            setattr(self, _PRIVATE.get(name, name), value)

    @property
    def data(self) -> Any:
        """The data of its instances.

        Raises:
            InvalidData: It is not JSON.
        """
        return job_data.decode(self.text)

    @property
    def text(self) -> str:
        """The data of its instances as JSON, decrypted if it is encrypted.

        Raises:
            DecryptionError: It can't be decrypted.
        """
        return self._backend.codec.decode(self.raw_data, self.klass)

    def upcoming(self, count: int = 5, *, after: float | None = None) -> list[float]:
        """Return when the next instances are due, in seconds since 1970; none while paused.

        Instances with jitter may start later.

        Args:
            count: Maximum number of instances.
            after: Leave out overdue instances, which are due until this time.
        """
        if self.runs_left is not None:
            count = min(count, self.runs_left)
        times = [] if self.next is None else [self.next]
        try:
            if times and after is not None and times[0] <= after:
                times = [self._next_after(times[0], after)]
            while times and len(times) < count:
                times.append(self._next_after(times[-1], times[-1]))
        except ValueError:  # an expression that another qless client stored
            pass
        if self.until is not None:
            times = [time for time in times if time <= self.until]
        return times

    def _next_after(self, instance: float, after: float) -> float:
        if self.cron:
            return Cron(self.cron, self.timezone or "UTC").next(after)
        if not self.interval:
            return max(instance, after)
        return instance + self.interval * (math.floor((after - instance) / self.interval) + 1)

    async def refresh(self) -> Self:
        """Read it again, and return it.

        Raises:
            NoSuchJob: It was canceled.
        """
        record = await self._store.recur_get(jid=self.jid)
        if record is None:
            detail = {"jid": self.jid, "why": "there is no such recurring job"}
            raise NoSuchJob("recur", "NOJOB", detail)
        self._load(record)
        return self

    async def update(self, **changes: Unpack[RecurringChanges]) -> None:
        """Change some of its fields: all of them or, if one is refused, none.

        Args:
            changes: See RecurringChanges.

        Raises:
            TypeError: There is no such option, or one has the wrong type.
            ValueError: The interval, cron expression or time zone is not valid.
            InvalidData: The data can't be encoded.
            InvalidArgument: Another value is refused, or belongs to the other kind of schedule.
        """
        UPDATE.refuse_unknown(changes)
        pairs = dict(UPDATE.check(changes))
        if "every" in pairs:
            pairs["interval"] = pairs.pop("every")
        codec, klass = self._backend.codec, changes.get("klass", self.klass)
        if "data" not in changes and codec.bound_to_klass and klass != self.klass:
            pairs["data"] = self.data
        if "data" in pairs:
            text = job_data.encode(pairs["data"], self._backend.max_data)
            pairs["data"] = codec.encode(text, klass)
            if (keys := self._keys_with(text, klass)) is not None:
                pairs["data_keys"] = keys
        for name in changes.keys() & {"until", "max_runs", "jitter", "expires_in"}:
            pairs["ends" if name == "until" else name] = pairs.pop(name, "none")
        if changes.keys() & {"cron", "timezone", "until", "max_runs"}:
            await self.refresh()
        if "cron" in changes or "timezone" in changes or (self.cron and self.ended):
            cron = Cron(
                pairs.get("cron", self.cron or ""),
                pairs.get("timezone", self.timezone or "UTC"),
            )
            pairs |= {
                "cron": cron.expression,
                "timezone": cron.timezone,
                "next": cron.next(await self._store.now()),
            }
        await self._store.recur_update(
            jid=self.jid, pairs=[part for pair in pairs.items() for part in pair]
        )
        await self.refresh()

    def _keys_with(self, text: bytes, klass: str) -> bytes | None:
        """Return what other data makes of the keys and costs of its instances."""
        if self._constraints is None:
            return None
        before = partial(job_data.decode_fields, self.text.encode("utf-8", "surrogateescape"))
        after = partial(job_data.decode_fields, text)
        return encode_data_keys(self._constraints, klass, before, after)

    async def tag(self, *tags: str) -> list[str]:
        """Add tags, and return all that it has.

        Args:
            tags: Tags, which its coming instances get.
        """
        self.tags = await self._store.recur_tag(jid=self.jid, tags=tags)
        return self.tags

    async def untag(self, *tags: str) -> list[str]:
        """Remove tags, and return those that it still has.

        Args:
            tags: Tags, which its coming instances don't get.
        """
        self.tags = await self._store.recur_untag(jid=self.jid, tags=tags)
        return self.tags

    async def pause(self) -> None:
        """Put no more instances until `resume`, even if it is put or declared again.

        Instances that were put are not affected.
        """
        await self._store.recur_pause(jid=self.jid)
        await self.refresh()

    async def resume(self) -> None:
        """Put instances again.

        The next one is due at the next time of the cron expression; with an interval, when it was
        due before the pause or, if that is over, an interval from now. Missed instances are not
        made up for.
        """
        await self.refresh()
        first = None
        if self.cron is not None:
            first = Cron(self.cron, self.timezone or "UTC").next(await self._store.now())
        await self._store.recur_resume(jid=self.jid, next=first)
        await self.refresh()

    async def run_now(self) -> str:
        """Put an instance at once, even while paused; the schedule is not affected.

        Returns:
            The jid of the instance.
        """
        jid = await self._store.recur_run(jid=self.jid)
        self.count += 1
        return jid

    async def cancel(self) -> None:
        """Delete it. Instances that were put are not affected."""
        await self._store.recur_off(jid=self.jid)

    def __repr__(self) -> str:
        when = f"every {self.interval} s"
        if self.cron is not None:
            when = f"at {self.cron!r} in {self.timezone}"
        paused = ", paused" if self.paused else ", ended" if self.ended else ""
        return f"<RecurringJob {self.jid} {self.klass} {when} into {self.queue!r}{paused}>"
