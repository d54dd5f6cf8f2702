"""The table of options: name, type and check of each, in classes that say where it is allowed.

Type checkers read the classes as keyword arguments; an `OptionTable` of a class checks the values
that a caller gave. An option that may be None is left out then.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from functools import partial
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Literal, TypeAlias, TypedDict, get_args
from zoneinfo import ZoneInfo

from aioqless import validation
from aioqless.client import job_data
from aioqless.errors import InvalidData
from aioqless.hints import no_option
from aioqless.lua import constant
from aioqless.validation import Seconds

MAX_CONTEXT = 4_096  # bytes
MAX_PRIORITY = constant("MAX_PRIORITY")
MAX_CONCURRENCY = constant("MAX_CONCURRENCY")
MAX_STARTS = constant("MAX_RATE_STARTS")
MAX_COST = constant("MAX_RATE_COST")
MAX_LIMITS = constant("MAX_LIMITS")
MAX_PERIOD = 1e10  # seconds
MIN_WEIGHT, MAX_WEIGHT = 0.01, 100

CheckedOptions: TypeAlias = Mapping[str, Any]  # as their checks return them
IfDependencyFails: TypeAlias = Literal["hold", "fail", "cancel", "run"]
Missing: TypeAlias = Literal["refuse", "done"]


class Key(str):
    """A key that is the same for all jobs: `unique=Key("daily-report")`.

    A key for each combination of some fields of the data is a tuple of their names:
    `unique=("customer",)`.
    """

    __slots__ = ()


UniqueUntil: TypeAlias = Literal["started", "done"]


@dataclass(frozen=True)
class Unique:
    """A key that one job has at a time; a put with a taken key returns that job's jid.

    A key until its job has ended needs no Unique: `unique=("customer",)` is short for
    `unique=Unique(("customer",))`.

    Example:
        once_a_day = Unique(Key("daily-report"), ttl=86_400)
        index = Unique(("page",), debounce=30, debounce_max=300)

    Attributes:
        key: A tuple of names of fields of the data, which gives each klass a key for each
            combination of values; or a `Key("text")`, which all jobs share that name it.
        until: Whether the job has the key until it starts, or until it ends (the default).
        ttl: For how long from the put the job has the key instead, whatever its state, in seconds
            or as a timedelta.
        debounce: The puts of the key are one job with the data and the options of the last,
            delayed by this time from it. If that job has started, they are one that runs after it.
            Recurring jobs and steps of workflows can't have it.
        debounce_max: For how long at most such puts delay it, from the first of them.

    Raises:
        TypeError: A value is of the wrong type.
        ValueError: A value is out of range, or two exclude each other.
    """

    key: Key | tuple[str, ...]
    _: KW_ONLY
    until: UniqueUntil | None = None
    ttl: Seconds | None = None
    debounce: Seconds | None = None
    debounce_max: Seconds | None = None

    def __post_init__(self) -> None:
        _check_key("key", self.key)
        if self.until is not None:
            _check_choice("until", self.until, of=UniqueUntil)
        given = {"ttl": self.ttl, "debounce": self.debounce, "debounce_max": self.debounce_max}
        periods = {
            name: check_period(name, duration)
            for name, duration in given.items()
            if duration is not None
        }
        for name, seconds in periods.items():
            object.__setattr__(self, name, seconds)
        kinds = [name for name in ("until", "ttl", "debounce") if getattr(self, name) is not None]
        if len(kinds) > 1:
            raise ValueError(f"{' and '.join(kinds)} are mutually exclusive")
        if "debounce_max" in periods and "debounce" not in periods:
            raise ValueError("debounce_max needs debounce")
        if periods.get("debounce_max", math.inf) < periods.get("debounce", 0):
            raise ValueError(
                f"debounce_max must be at least debounce, {self.debounce} s (got "
                f"{self.debounce_max})"
            )


@dataclass(frozen=True)
class Fair:
    """The tenant of a job, such as a customer: the tenants of a queue start jobs in turns.

    Example:
        customer = Fair(("customer",))
        large_customer = Fair(("customer",), weight=3)

    Attributes:
        by: A tuple of names of fields of the data, which is one tenant for each combination of
            values, the same for all klasses; or a `Key("text")`, which is the tenant of that name.
        weight: How many turns the tenant has for one of another, 0.01 to 100; default: 1.

    Raises:
        TypeError: A value is of the wrong type.
        ValueError: The weight is out of range.
    """

    by: Key | tuple[str, ...]
    weight: float | None = None

    def __post_init__(self) -> None:
        _check_key("by", self.by)
        if self.weight is not None:
            _check_weight("weight", self.weight)


@dataclass(frozen=True)
class Limit:
    """A limit on jobs that run at once or start in a period, on all workers together.

    A job may have up to four, `@job(limits=[...])`, and starts when all of them admit it.

    Example:
        tokens = Limit("openai-tokens", rate=(200_000, 60), cost="tokens")
        customer = Limit(("customer",), max_concurrency=2)

    Attributes:
        key: Name of the limit, which all jobs with a limit of this name share; or a tuple of names
            of fields of the data, which gives each klass a limit for each combination of values.
            Default: all jobs of the klass share it.
        rate: How many jobs start in a period, or what they cost together, and the period, in
            seconds or as a timedelta.
        max_concurrency: How many jobs run at once.
        cost: What a start takes of the rate, from 0: a number, or the name of the field that has
            it. Default: each takes 1.

    Raises:
        TypeError: A value is of the wrong type.
        ValueError: A value is out of range, or there is neither a rate nor a max_concurrency.
    """

    key: str | tuple[str, ...] = ()
    _: KW_ONLY
    rate: tuple[int, Seconds] | None = None
    max_concurrency: int | None = None
    cost: float | str | None = None

    def __post_init__(self) -> None:
        is_name = isinstance(self.key, str)
        object.__setattr__(self, "key", _check_key("key", Key(self.key) if is_name else self.key))
        if self.rate is None and self.max_concurrency is None:
            raise ValueError(f"Limit({self.key!r}) needs a rate or a max_concurrency")
        if self.max_concurrency is not None:
            check_whole("max_concurrency", self.max_concurrency, MAX_CONCURRENCY)
        if self.rate is not None:
            most = MAX_STARTS if self.cost is None else MAX_COST
            object.__setattr__(self, "rate", _check_rate("rate", self.rate, most))
        elif self.cost is not None:
            raise ValueError("cost needs a rate, of which a start takes it")
        if self.cost is not None and not isinstance(self.cost, str):
            self.check_cost(self.cost)

    def check_cost(self, cost: object) -> float:
        """Return what a start costs.

        Raises:
            TypeError: It is no number.
            ValueError: It is less than 0, or more than the limit.
        """
        number = validation.check_number("cost", cost, least=0)  # type: ignore[arg-type]
        if self.rate and number > self.rate[0]:
            raise ValueError(
                f"cost must be at most {self.rate[0]:,}, the limit of {self.key!r} (got {cost!r}): "
                "no period has room for it"
            )
        return number


def check_timezone(name: str, zone: str | ZoneInfo) -> str:
    """Return the name of a time zone that is given by its name, or as a ZoneInfo."""
    text = zone.key if isinstance(zone, ZoneInfo) else zone
    if not isinstance(text, str):
        raise TypeError(
            f"{name} must be a name such as 'Europe/Paris', or a ZoneInfo of one (got {zone!r})"
        )
    return text


def _check_key(name: str, key: str | tuple[str, ...]) -> Key | tuple[str, ...]:
    if isinstance(key, Key):
        validation.check_name(name, key)
    elif isinstance(key, str):
        raise TypeError(
            f"{name} must be a tuple or a Key (got {key!r}): write ({key!r},) for one key per "
            f"value of the field {key!r}, or Key({key!r}) for one key"
        )
    elif not (isinstance(key, tuple) and all(isinstance(field, str) for field in key)):
        raise TypeError(
            f"{name} must be a tuple of the names of fields of the data, or a Key (got {key!r})"
        )
    return key


def check_whole(name: str, number: int, most: int) -> int:
    """Return an integer from 1 to `most`."""
    if validation.check_number(name, number) % 1 or not 1 <= number <= most:
        raise ValueError(f"{name} must be an integer from 1 to {most:,} (got {number!r})")
    return number


def check_priority(name: str, priority: float) -> float:
    """Return a priority in whose range jobs run in the order in which they were put."""
    if not -MAX_PRIORITY <= validation.check_number(name, priority) <= MAX_PRIORITY:
        raise ValueError(
            f"{name} must be from -{MAX_PRIORITY} to {MAX_PRIORITY} (got {priority!r}): beyond, "
            "jobs would not run in the order in which they were put"
        )
    return priority


def check_period(name: str, duration: Seconds) -> float:
    """Return a duration in seconds, which is not 0."""
    seconds = validation.check_seconds(name, duration, least=-math.inf)
    if not 0 < seconds <= MAX_PERIOD:
        raise ValueError(
            f"{name} must be more than 0 seconds, and at most {MAX_PERIOD:g} (got {duration!r})"
        )
    return seconds


def _check_rate(name: str, rate: tuple[int, Seconds], most: int = MAX_STARTS) -> tuple[int, float]:
    if not isinstance(rate, tuple) or len(rate) != 2:
        raise TypeError(
            f"{name} must be a tuple of a number of starts and a period, in seconds or as a "
            f"timedelta, such as (10, 60) (got {rate!r})"
        )
    return check_whole(name, rate[0], most), check_period(f"{name}'s period", rate[1])


def _check_limits(name: str, limits: Sequence[Limit]) -> tuple[Limit, ...]:
    if not isinstance(limits, list | tuple) or not all(isinstance(each, Limit) for each in limits):
        raise TypeError(f"{name} must be a list of Limit objects (got {limits!r})")
    if len(limits) > MAX_LIMITS:
        raise ValueError(f"a job may have at most {MAX_LIMITS} {name} (got {len(limits)})")
    return tuple(limits)


def _check_unique(name: str, unique: Unique | Key | tuple[str, ...]) -> Unique:
    return unique if isinstance(unique, Unique) else Unique(_check_key(name, unique))


def _check_fair(name: str, fair: Fair) -> Fair:
    if not isinstance(fair, Fair):
        raise TypeError(f"{name} must be a Fair, such as Fair(('customer',)) (got {fair!r})")
    return fair


def _check_weight(name: str, weight: float) -> float:
    if not MIN_WEIGHT <= validation.check_number(name, weight) <= MAX_WEIGHT:
        raise ValueError(f"{name} must be from {MIN_WEIGHT} to {MAX_WEIGHT} (got {weight!r})")
    return weight


def _check_until(name: str, until: float | datetime) -> float:
    if isinstance(until, datetime):
        return validation.check_time(name, until)
    return validation.check_number(name, until, least=0)


def _encode_context(name: str, texts: Mapping[str, str]) -> bytes:
    text = job_data.encode(validation.check_texts(name, texts))
    if len(text) > MAX_CONTEXT:
        raise InvalidData(
            f"{name} must be at most {MAX_CONTEXT:,} bytes (got {len(text):,}): "
            "put it into the data"
        )
    return text


def _check_choice(name: str, value: object, *, of: object) -> object:
    """Check that a value is one of the strings of a Literal."""
    if value not in (choices := get_args(of)):
        pair = " or ".join(map(repr, choices))
        shown = pair if len(choices) == 2 else f"one of {', '.join(choices)}"
        raise ValueError(f"{name} must be {shown} (got {value!r})")
    return value


_IfExists: TypeAlias = Literal["keep", "raise"]


class TemplateOptions(TypedDict, total=False):
    """Options of put, of recurring jobs and of `@job`.

    Attributes:
        unique: Key that one job has at a time: `("customer",)`, `Key("text")`, or a Unique.
        limits: Up to four concurrency and rate limits, all of which must admit the job.
        fair: The job's tenant: the tenants of a queue start jobs in turns.
        priority: Lower runs sooner, from -100 to 100; default: 0.
        tags: Tags to find the job by.
        retries: Maximum number of retries; default: the handler's, else 5.
        expires_in: Time in which the job must start, from when it is put, or from when the instance
            is due; a worker that gets it later fails it in the group `<queue>-expired`.
    """

    unique: Annotated[Unique | Key | tuple[str, ...] | None, _check_unique]
    limits: Annotated[Sequence[Limit] | None, _check_limits]
    fair: Annotated[Fair | None, _check_fair]
    priority: Annotated[float | None, check_priority]
    tags: Annotated[Sequence[str] | None, validation.check_names]
    retries: Annotated[int | None, partial(validation.check_number, least=0)]
    expires_in: Annotated[Seconds | None, validation.check_seconds]


class PutOptions(TemplateOptions, total=False):
    """The options of put.

    Attributes:
        jid: Id of the job; default: a random one.
        delay: Time until the job may run, in seconds or as a timedelta.
        at: When the job may run, a datetime with a time zone, instead of a delay.
        depends: Jids of jobs to wait for.
        missing: What a job to wait for is that doesn't exist: "refuse" (the default) raises
            NoSuchJob, "done" doesn't wait for it.
        context: Strings by name that travel with the job, such as those of a trace.
        if_dependency_fails: What happens to the job if one that it depends on fails.
        if_exists: What to do if the jid or the unique key is taken: leave that job alone, or raise
            JobExists. Default: a jid is moved here, a unique key is left alone.
    """

    jid: Annotated[str | None, validation.check_jid]
    delay: Annotated[Seconds, validation.check_seconds]
    at: Annotated[datetime | None, validation.check_time]
    depends: Annotated[Sequence[str] | None, validation.check_names]
    missing: Annotated[Missing | None, partial(_check_choice, of=Missing)]
    context: Annotated[Mapping[str, str] | None, _encode_context]
    if_dependency_fails: Annotated[
        IfDependencyFails | None, partial(_check_choice, of=IfDependencyFails)
    ]
    if_exists: Annotated[_IfExists | None, partial(_check_choice, of=_IfExists)]


class FlowOptions(TypedDict, total=False):
    """The options of put_flow.

    Attributes:
        if_dependency_fails: What happens to jobs without a choice of their own if one that they
            depend on fails.
        once: Name of the workflow, of which its jobs get their jids: `order-7-1`, `order-7-2`.
            While one of them exists, nothing is put.
    """

    if_dependency_fails: IfDependencyFails | None
    once: str | None


class ScheduleOptions(TypedDict, total=False):
    """When the instances of a recurring job are due.

    Attributes:
        every: Interval, in seconds or as a timedelta.
        cron: Cron expression, or a nickname such as `@daily`, instead of an interval.
        timezone: With `cron`: its time zone, by its name or as a ZoneInfo; default: UTC.
        backlog: Maximum number of missed instances to make up for, 0 for all; default: missed
            instances are coalesced into one.
        until: When it ends, as a datetime with a time zone or in seconds since 1970: no instance is
            due later. None: never.
        max_runs: Number of instances after which it ends; None: no limit.
        jitter: Maximum random delay of each instance, in seconds or as a timedelta.
    """

    every: Annotated[Seconds, check_period]
    cron: Annotated[str, validation.check_name]
    timezone: Annotated[str | ZoneInfo | None, check_timezone]
    backlog: Annotated[int | None, partial(validation.check_number, least=0)]
    until: Annotated[float | datetime | None, _check_until]
    max_runs: Annotated[int | None, validation.check_integer]
    jitter: Annotated[Seconds | None, validation.check_seconds]


class RecurOptions(TemplateOptions, ScheduleOptions, total=False):
    """The options of recur: a jid, `every` or `cron`, and what its instances are put with.

    Attributes:
        jid: Id of the recurring job.
        offset: With `every`: time until the first instance; default: 0.
    """

    jid: Annotated[str | None, validation.check_jid]
    offset: Annotated[Seconds, validation.check_seconds]


class RecurringChanges(ScheduleOptions, total=False):
    """What `RecurringJob.update` changes, besides its schedule.

    Attributes:
        priority: Priority of its instances.
        retries: Maximum number of retries of its instances.
        expires_in: Time after an instance is due in which it must start; None: no limit.
        data: Data of its instances.
        klass: Klass of its instances.
        queue: Queue of its instances.
    """

    priority: Annotated[float, check_priority]
    retries: int
    expires_in: Annotated[Seconds | None, validation.check_seconds]
    data: object
    klass: str
    queue: str


class OptionTable:
    """The options that a method takes, and the check of each.

    Args:
        method: Name of the method.
        options: The class that declares them.
        elsewhere: What has other options, by their names, as the end of a message.
    """

    def __init__(
        self, method: str, options: type, elsewhere: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._method, self._elsewhere = method, elsewhere
        self.names = options.__annotations__.keys()
        hints = options.__annotations__.items()
        self._checks: dict[str, Callable[[str, Any], Any]] = {
            name: getattr(hint, "__metadata__", (lambda _, value: value,))[0]
            for name, hint in hints
        }
        self._may_be_none = {
            name for name, hint in hints if NoneType in get_args(getattr(hint, "__origin__", hint))
        }

    def refuse_unknown(self, options: Mapping[str, object], *, data: bool = False) -> None:
        """Raise TypeError if the method has no option of one of the names.

        Args:
            options: The options.
            data: An unknown one may be meant as data.
        """
        if not options.keys() <= self.names:
            name = min(options.keys() - self.names)
            elsewhere = self._elsewhere.get(name, "")
            raise no_option(self._method, name, self.names, elsewhere, data=data)

    def check(self, options: Mapping[str, object]) -> CheckedOptions:
        """Return the values of options as the commands take them; leave out None.

        Raises:
            InvalidData: The context is too large.
            TypeError: An option has the wrong type.
            ValueError: An option is out of range.
        """
        checks = self._checks
        return {
            name: checks[name](name, value)
            for name, value in options.items()
            if value is not None or name not in self._may_be_none
        }


_OF_HANDLERS = (
    *("backoff", "cron", "every", "executor"),
    *("klass", "result_ttl", "retry_on", "timeout"),
)
_NOT_OF_PUT = dict.fromkeys(_OF_HANDLERS, ": it is one of @job") | {
    "once": ': it is one of put_flow; a single job takes jid="order-7", if_exists="keep"'
}
_NOT_OF_FLOW = dict.fromkeys(
    PutOptions.__annotations__, ": a step has it: `handler.data(...).with_options(...)`"
)
PUT = OptionTable("put", PutOptions, _NOT_OF_PUT)
FLOW = OptionTable("put_flow", FlowOptions, _NOT_OF_FLOW)
RECUR = OptionTable("recur", RecurOptions)
UPDATE = OptionTable("update", RecurringChanges)
