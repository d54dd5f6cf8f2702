"""RecurringJob: a template as it was read, the verbs that change it in Redis, and how one is
made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, cast

from aioqless import validation
from aioqless.client import job_data
from aioqless.client.job.backend import JobBackend
from aioqless.client.put import Klass, NewJob
from aioqless.client.put_options import PutOptions, RecurOptions, TemplateOptions
from aioqless.client.recurring.cron import Cron
from aioqless.client.recurring.schedule import Every, checked_backlog, schedule_of
from aioqless.errors import AioqlessError, NoSuchJob

OF_PUT_ALONE = PutOptions.__annotations__.keys() - TemplateOptions.__annotations__.keys()


async def recur(
    backend: JobBackend,
    queue: str,
    job: str | Klass | NewJob,
    data: Any,
    options: RecurOptions,
) -> RecurringJob:
    """Make a recurring job, or change the one with this jid.

    Raises:
        InvalidData: The data can't be encoded, or isn't what the handler takes.
        TypeError: There is no such option, or one has the wrong type.
        ValueError: An option is out of range.
    """
    if wrong := options.keys() - RecurOptions.__annotations__.keys():
        raise TypeError(
            f"recur has no option {', '.join(sorted(wrong))}; "
            f"it has {', '.join(RecurOptions.__annotations__)}"
        )
    store, schedule = backend.store, schedule_of(options)
    backlog = checked_backlog(schedule, options.get("backlog"))
    offset = validation.check_number("offset", options.get("offset", 0), least=0)
    of_put = {name: options[name] for name in TemplateOptions.__annotations__ if name in options}  # type: ignore[literal-required]  # the names are those of a part of the options
    template = NewJob.of(job, data, cast(PutOptions, of_put))
    if astray := sorted(OF_PUT_ALONE & template.options.keys()):
        raise TypeError(f"a recurring job has no option {', '.join(astray)}: put has")
    new = template.prepare(backend.max_data, backend.codec)
    shared: dict[str, Any] = {
        "queue": queue,
        "jid": new["jid"],
        "klass": new["klass"],
        "data": new["data"],
        "priority": new.get("priority"),
        "tags": new.get("tags"),
        "retries": new.get("retries"),
        "terms": new.get("terms"),
        "backlog": backlog,
    }
    if isinstance(schedule, Cron):
        if "offset" in options:
            raise TypeError("offset goes with every: a cron expression has times of its own")
        await store.recur_cron(
            expression=schedule.expression,
            timezone=schedule.timezone,
            next=schedule.next(await store.now()),
            **shared,
        )
    else:
        await store.recur_on(interval=schedule.seconds, offset=offset, **shared)
    record = await store.recur_get(jid=new["jid"])
    if record is None:
        raise AioqlessError(f"recurring job {new['jid']} was canceled while it was being read")
    return RecurringJob(backend, record)


class RecurringJob:
    """A template of jobs, as it was when it was read: one comes whenever an `interval` has passed
    (seconds), or at the times of `cron` in `timezone`.

    `next` is when the next instance is due (seconds since 1970), None while it is `paused`.
    `backlog` is how many missed instances are made up for; with `coalesce`, all that were missed
    give one. `declared` is when code last declared it, None for one made by hand."""

    __slots__ = (
        "_backend", "_store", "backlog", "coalesce", "count", "cron", "declared", "interval", "jid", "klass", "next", "paused",
        "priority", "queue", "raw_data", "retries", "tags", "timezone",
    )  # fmt: skip

    def __init__(self, backend: JobBackend, record: Mapping[str, Any]) -> None:
        self._backend = backend
        self._store = backend.store
        self._read(record)

    def _read(self, record: Mapping[str, Any]) -> None:
        self.jid: str = record["jid"]
        self.klass: str = record["klass"]
        self.queue: str = record["queue"]
        self.priority: float = record["priority"]
        self.interval: float | None = record["interval"]
        self.cron: str | None = record["cron"]
        self.timezone: str | None = record["timezone"]
        self.retries: int = record["retries"]
        self.count: int = record["count"]
        self.raw_data: str = record["data"]
        self.tags: list[str] = list(record["tags"])
        self.backlog: int = record["backlog"]
        self.coalesce: bool = record["coalesce"]
        self.paused: bool = record["paused"]
        self.declared: float | None = record["declared"]
        self.next: float | None = record["next"]

    @property
    def data(self) -> Any:
        """The data of its instances. Raises InvalidData."""
        return job_data.decode(self.text)

    @property
    def text(self) -> str:
        """The data of its instances as decrypted JSON. Raises DecryptionError."""
        return self._backend.codec.decode(self.raw_data, self.klass)

    def upcoming(self, count: int = 5) -> list[float]:
        """Return when the next instances are due, in seconds since 1970; none while paused."""
        times = [] if self.next is None else [self.next]
        try:
            while times and len(times) < count:
                if self.cron:
                    times.append(Cron(self.cron, self.timezone or "UTC").next(times[-1]))
                else:
                    times.append(times[-1] + (self.interval or 0))
        except ValueError:  # an expression that another qless client stored
            pass
        return times

    async def refresh(self) -> Self:
        """Read it again. Raises NoSuchJob."""
        record = await self._store.recur_get(jid=self.jid)
        if record is None:
            raise NoSuchJob(
                "recur", "NOJOB", {"jid": self.jid, "why": "there is no such recurring job"}
            )
        self._read(record)
        return self

    async def update(self, **changes: Any) -> None:
        """Change some of its fields: all of them or, if one is refused, none.

        Args:
            changes: Any of priority, retries, data, klass, queue, backlog, and of a schedule of its kind: `every` (seconds; `interval` is
                the same), or cron and timezone.

        Raises:
            ValueError: There can't be such an interval or cron expression.
            InvalidData: There can't be such data.
            InvalidArgument: Another value or name can't be, or belongs to the other kind of schedule.
        """
        if "every" in changes:
            if "interval" in changes:
                raise TypeError("every and interval are the same: say one of them")
            changes["interval"] = Every(changes.pop("every")).seconds
        codec, klass = self._backend.codec, changes.get("klass", self.klass)
        if "data" not in changes and codec.bound_to_klass and klass != self.klass:
            changes["data"] = self.data
        if "data" in changes:
            text = job_data.encode(changes["data"], self._backend.max_data)
            changes["data"] = codec.encode(text, klass)
        if "cron" in changes or "timezone" in changes:
            await self.refresh()
            cron = Cron(
                changes.get("cron", self.cron or ""),
                changes.get("timezone", self.timezone or "UTC"),
            )
            changes |= {
                "cron": cron.expression,
                "timezone": cron.timezone,
                "next": cron.next(await self._store.now()),
            }
        await self._store.recur_update(
            jid=self.jid,
            pairs=[part for change in changes.items() for part in change],
        )
        await self.refresh()

    async def tag(self, *tags: str) -> list[str]:
        """Put tags on it and so on its coming instances; returns all it has."""
        self.tags = await self._store.recur_tag(jid=self.jid, tags=tags)
        return self.tags

    async def untag(self, *tags: str) -> list[str]:
        """Take tags off it; returns those it still has."""
        self.tags = await self._store.recur_untag(jid=self.jid, tags=tags)
        return self.tags

    async def pause(self) -> None:
        """No more instances until it is resumed, also when it is put or declared anew; those that
        were made go on."""
        await self._store.recur_pause(jid=self.jid)
        await self.refresh()

    async def resume(self) -> None:
        """Go on: the next instance comes an interval from now, or at the next time of its cron
        expression. Nothing is made up for."""
        await self.refresh()
        first = (
            None
            if self.cron is None
            else Cron(self.cron, self.timezone or "UTC").next(await self._store.now())
        )
        await self._store.recur_resume(jid=self.jid, next=first)
        await self.refresh()

    async def run_now(self) -> str:
        """Make an instance at once, also of one that is paused; its clock goes on as it was.
        Returns the instance's jid."""
        jid: str = await self._store.recur_run(jid=self.jid)
        self.count += 1
        return jid

    async def cancel(self) -> None:
        """No more instances; those that were made stay."""
        await self._store.recur_off(jid=self.jid)

    def __repr__(self) -> str:
        when = (
            f"every {self.interval} s"
            if self.cron is None
            else f"at {self.cron!r} in {self.timezone}"
        )
        return f"<RecurringJob {self.jid} {self.klass} {when} into {self.queue!r}{', paused' if self.paused else ''}>"
