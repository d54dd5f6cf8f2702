"""The application's context around handlers."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Flask
from flask.cli import ScriptInfo

from aioqless import Handler
from aioqless.handlers import Hook, Middleware, Resource, Source, declared


@dataclass(frozen=True)
class AppSource:
    """Where the command `flask` has its application from, for processes that load it, too.

    Attributes:
        path: What `--app` or FLASK_APP says.
        create_app: The factory of a command of the project's own.
    """

    path: str | None
    create_app: Callable[..., Flask] | None

    def __call__(self, find: Callable[[], Any]) -> Any:
        """Return a function that is called with the application's context."""
        return _wrap(find(), self._app())

    @functools.cache  # noqa: B019  # one for all functions of the process
    def _app(self) -> Flask:
        return ScriptInfo(self.path, self.create_app).load_app()


def with_app_context(
    handler: Handler[...], app: Flask, source: AppSource | None = None
) -> Handler[...]:
    """Return a handler that runs within the application's context.

    A plain function enters and leaves it in its own thread, so that what is released then, such as
    a database session, is released where it was used.

    Without `source`, which says where a process finds the application, handlers in a process have
    no context.
    """
    if inspect.isclass(handler.fn):
        return handler
    if handler.executor == "process":
        return dataclasses.replace(handler, loader=source)
    return dataclasses.replace(handler, fn=_wrap(handler.fn, app))


def worker_sources(
    app: Flask, sources: Sequence[Source], source: AppSource | None = None
) -> list[Source]:
    """Return what a worker of an application runs: handlers have its context around them."""
    return [
        *(with_app_context(each, app, source) for each in declared(Handler, sources)),
        *declared(Resource, sources),
        *declared(Middleware, sources),
        *declared(Hook, sources),
    ]


def _wrap(fn: Any, app: Flask) -> Any:
    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def call_on_loop(*args: Any, **kwargs: Any) -> object:
            with app.app_context():
                return await fn(*args, **kwargs)

        return call_on_loop

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> object:
        with app.app_context():
            return fn(*args, **kwargs)

    return call
