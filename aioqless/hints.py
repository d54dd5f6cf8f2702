"""Help for wrong names: what other libraries call theirs, and what to write instead.

Type checkers find these mistakes by themselves, so nothing here is declared to them.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from types import MappingProxyType
from typing import TypeVar

C = TypeVar("C", bound=type[object])

# What other libraries export.
_EXPORTS = {
    "Celery": "`Client()` to put jobs, and `@job` to declare them",
    "Cron": "`@job(cron=...)`",
    "Depends": "`aioqless.Inject`",
    "RateLimit": "`@job(limits=[Limit(rate=...)])`",
    "RedisSettings": "`Client('redis://...')`",
    "Task": "`@job`",
    "WorkerSettings": "`Settings`",
    "actor": "`@job`",
    "chord": "`chain(group(...), last)`",
    "create_pool": "`Client(...)`",
    "cron": "`@job(cron=...)`",
    "crontab": "`@job(cron=...)`",
    "periodic_task": "`@job(every=...)`",
    "run_worker": "`Worker(client, app.jobs).run()`",
    "shared_task": "`@job`",
    "signature": "`handler.data(...)`",
    "task": "`@job`",
}
# What other queues call their put.
_PUT = re.compile(
    "(add|apply|defer|delay|enqueue|kicker|kiq|perform|publish|push|schedule|send|submit)"
    "(_async|_at|_in|_job|_task|_with_options)?"
)
# What other queues call what makes a job without putting it.
_DATA = re.compile("s|si|signature|subtask|message(_with_options)?")
# What other queues call an option or a part of its value, and the option to write.
_OPTIONS = {
    "_defer_by": "delay=",
    "_defer_until": "at=",
    "_expires": "expires_in=",
    "_job_id": "jid=",
    "at_front": "priority=",
    "autoretry_for": "retry_on=",
    "concurrency": "limits=[Limit(max_concurrency=...)]",
    "countdown": "delay=",
    "debounce": "unique=Unique(key, debounce=...)",
    "debounce_max": "unique=Unique(key, debounce=..., debounce_max=...)",
    "default_retry_delay": "backoff=",
    "depends_on": "depends=",
    "eta": "at=",
    "expires": "expires_in=",
    "fair_by": "fair=Fair(by)",
    "fair_weight": "fair=Fair(by, weight=...)",
    "job_id": "jid=",
    "job_timeout": "timeout=",
    "keep_result": "result_ttl=",
    "limit_key": "limits=[Limit(key, max_concurrency=..., rate=...)]",
    "max_attempts": "retries=",
    "max_concurrency": "limits=[Limit(max_concurrency=...)]",
    "max_retries": "retries=",
    "max_tries": "retries=, one less, since the first run is no retry",
    "name": "klass=",
    "queue_name": "queue=",
    "rate_limit": "limits=[Limit(rate=(number, period))]",
    "retry": "retries=",
    "retry_backoff": "backoff=",
    "run_at": "at=",
    "run_in": "delay=",
    "soft_time_limit": "timeout=",
    "task_id": "jid=",
    "throttle": "limits=[Limit(rate=(number, period))]",
    "time_limit": "timeout=",
    "unique_for": "unique=Unique(key, ttl=...)",
    "unique_until": "unique=Unique(key, until=...)",
}
# Options of other queues that are none here, and what to do.
_NO_OPTIONS = {
    "_queue_name": "write queue=",
    "acks_late": "leave it out, a job is done when its handler has returned",
    "args": "write `handler.data(...)`",
    "base": "write a middleware, or a resource that handlers ask for",
    "bind": "leave it out, a handler takes its job as its first parameter",
    "ignore_result": "leave it out, a result is kept only with result_ttl=",
    "kwargs": "write `handler.data(...)`",
    "link": "write chain(first, next)",
    "link_error": "write handler.data(...).on_failure(...)",
    "run_at_startup": "write an `@aioqless.lifespan`",
    "serializer": "leave it out, data is JSON, which a codec of the client may encode",
}
# Commands of other queues, and what to type instead.
COMMANDS = {
    "beat": "aioqless worker, which runs schedules itself",
    "dashboard": "aioqless web",
    "enqueue": "aioqless put",
    "events": "aioqless tail",
    "flower": "aioqless web",
    "info": "aioqless queues",
    "inspect": "aioqless workers",
    "monitor": "aioqless top",
    "purge": "aioqless clear",
    "requeue": "aioqless retry",
    "revoke": "aioqless cancel",
    "run": "aioqless worker",
    "scheduler": "aioqless worker, which runs schedules itself",
    "start": "aioqless worker",
    "status": "aioqless queues",
    "ui": "aioqless web",
}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the most similar known name as the end of an error message; empty if none is."""
    similar = get_close_matches(name, list(known), 1, 0.7)
    return f"; did you mean {similar[0]!r}?" if similar else ""


def no_option(
    method: str, name: str, options: Collection[str], elsewhere: str = "", *, data: bool = False
) -> TypeError:
    """Return the error for an option that a method does not have.

    Args:
        method: Name of the method.
        name: Name of the option.
        options: The options that it has.
        elsewhere: What has it instead, as the end of a message.
        data: It may be meant as a part of the data of a handler.
    """
    own = _OPTIONS.get(name, "")
    is_known = own.partition("=")[0] in options
    hint = elsewhere or (f": write {own}" if is_known else did_you_mean(name, options))
    if name in _NO_OPTIONS and not elsewhere:
        hint = f": {_NO_OPTIONS[name]}"
    elif data:
        hint += f"; data goes into `handler.data({name}=...)`"
    hint = hint or f"; it has {', '.join(sorted(options))}"
    return TypeError(f"{method} has no option {name!r}{hint}")


def no_export(name: str) -> Exception:
    """Return the error for a name that `aioqless` does not export.

    `from aioqless import name` would drop the hint of an AttributeError.
    """
    if name[0].isupper() and hasattr(import_module("aioqless.errors"), name):
        hint = f": write `from aioqless.errors import {name}`"
    elif name in _EXPORTS:
        hint = f": write {_EXPORTS[name]}"
    else:
        hint = did_you_mean(name, import_module("aioqless").__all__)
    imports = sys._getframe(2).f_code.co_name == "_handle_fromlist"  # noqa: SLF001
    if hint and imports and not find_spec(f"aioqless.{name}"):
        return ImportError(f"cannot import name {name!r} from 'aioqless'{hint}")
    return AttributeError(f"module 'aioqless' has no attribute {name!r}{hint}")


def suggest_put(
    way: str, parts: Mapping[str, type] = MappingProxyType({}), *, what: str = "a job"
) -> Callable[[C], C]:
    """Return a decorator of classes: names by which other queues put a job raise with a hint.

    Args:
        way: How a job is put with an object of the class.
        parts: The classes that have the other methods, by how one is reached.
        what: What is put.
    """

    def __getattr__(self: object, name: str) -> object:  # noqa: N807
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        part = next((each for each, of in parts.items() if name in vars(of)), None)
        if _PUT.fullmatch(name):
            text += f": put {what} by {way}"
        elif _DATA.fullmatch(name):
            text += ": make a job by `handler.data(name=...)`"
        elif part and name[0] != "_":
            text += f": write `{part}.{name}(...)`"
        raise AttributeError(text, name=name, obj=self)

    def decorate(cls: C) -> C:
        type.__setattr__(cls, "__getattr__", __getattr__)
        return cls

    return decorate


def suggest_other_type(other: str, how: str) -> Callable[[C], C]:
    """Return a decorator of a type of jobs: names that only the other type has raise with a hint.

    Args:
        other: Name of the other type.
        how: Where it comes from.
    """

    def __getattr__(self: object, name: str) -> object:  # noqa: N807
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name[0] != "_" and hasattr(getattr(import_module("aioqless.client.job"), other), name):
            text += f": {other} has it, {how}"
        raise AttributeError(text, name=name, obj=self)

    def decorate(cls: C) -> C:
        type.__setattr__(cls, "__getattr__", __getattr__)
        return cls

    return decorate


def suggest_async_with(cls: C) -> C:
    """Decorate a class whose objects are entered by `async with`: a plain `with` says so."""

    def __enter__(*_: object) -> None:  # noqa: N807
        raise TypeError(
            f"write `async with {cls.__name__}(...)`; "
            "without an event loop, `with aioqless.SyncClient(...)`"
        )

    for name in ("__enter__", "__exit__"):  # `with` looks for both
        type.__setattr__(cls, name, __enter__)
    return cls


def suggest_options(hints: Mapping[str, str]) -> Callable[[C], C]:
    """Return a decorator of classes: options that their constructor lacks raise with a hint.

    Args:
        hints: What to write instead, by the name of the option.
    """

    def decorate(cls: C) -> C:
        construct = vars(cls)["__init__"]

        known = signature(construct).parameters

        @functools.wraps(construct)
        def __init__(self: object, *args: object, **options: object) -> None:  # noqa: N807
            for name in options:
                if name in known:
                    continue
                hint = f": write {hints[name]}" if name in hints else did_you_mean(name, known)
                if hint:
                    raise TypeError(f"{cls.__name__} has no option {name!r}{hint}")
            construct(self, *args, **options)

        type.__setattr__(cls, "__init__", __init__)
        return cls

    return decorate
