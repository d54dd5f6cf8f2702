"""Database connections of handlers and hooks: none is left open, or used after it broke."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any

import django
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections, connections

from aioqless import Handler
from aioqless.handlers import Hook

_callers: ContextVar[bool] = ContextVar("aioqless_django_callers", default=False)


@contextmanager
def callers_connections() -> Iterator[None]:
    """Use the connections of the calling thread in the block, as tests with a transaction do.

    What is called by `sync_to_async` runs on it, if it waits for the loop in `async_to_sync`.
    """
    token = _callers.set(True)
    try:
        yield
    finally:
        _callers.reset(token)


@asynccontextmanager
async def own_connections() -> AsyncIterator[None]:
    """Run what is called by `sync_to_async` in a thread of its own; close its connections."""
    if _callers.get():
        yield
        return
    async with ThreadSensitiveContext():
        try:
            yield
        finally:
            await sync_to_async(connections.close_all)()


@contextmanager
def checked_connections() -> Iterator[None]:
    """Close the connections of this thread that are old or broken, before and after."""
    close_old()
    try:
        yield
    finally:
        close_old()


def close_old() -> None:
    """Close the connections of this thread that are old or broken, unless a test uses them."""
    if not _callers.get():
        close_old_connections()


def with_connections(handler: Handler[...]) -> Handler[...]:
    """Return a handler that treats database connections as a request of Django does.

    A plain function has those of its thread, checked before and after each run, as `CONN_MAX_AGE`
    says. A coroutine gets a thread of its own for what it calls by `sync_to_async`, as under ASGI;
    its connections are closed at the end of the run. So it is in processes, which set up Django.
    """
    if inspect.isclass(handler.fn):
        return handler
    if handler.executor == "process":
        return dataclasses.replace(handler, loader=_load_in_process)
    return dataclasses.replace(handler, fn=_wrap(handler.fn))


def hook_with_connections(hook: Hook) -> Hook:
    """Return a hook that treats database connections as a handler does."""
    return dataclasses.replace(hook, fn=_wrap(hook.fn))


def on_callers_thread(handler: Handler[...]) -> Handler[...]:
    """Return a handler whose plain function runs where `sync_to_async` calls it."""
    if inspect.isclass(handler.fn) or inspect.iscoroutinefunction(handler.fn):
        return handler
    return dataclasses.replace(handler, fn=_call_there(handler.fn), executor=None)


def hook_on_callers_thread(hook: Hook) -> Hook:
    """Return a hook whose plain function runs where `sync_to_async` calls it."""
    if inspect.iscoroutinefunction(hook.fn):
        return hook
    return dataclasses.replace(hook, fn=_call_there(hook.fn))


def _call_there(fn: Callable[..., object]) -> Callable[..., Coroutine[object, object, object]]:
    async def call(*args: Any, **kwargs: Any) -> object:
        return await sync_to_async(fn)(*args, **kwargs)

    return call


def _load_in_process(find: Callable[[], Any]) -> Any:
    django.setup()  # before its module is imported, which may have models
    return _wrap(find())


def _wrap(fn: Any) -> Any:
    if inspect.iscoroutinefunction(fn):
        return own_connections()(fn)
    return checked_connections()(fn)
