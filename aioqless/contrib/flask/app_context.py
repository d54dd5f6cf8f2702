"""The application's context around handlers."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from typing import Any

from flask import Flask

from aioqless import Handler


def with_app_context(handler: Handler[...], app: Flask) -> Handler[...]:
    """Return a handler that runs within the application's context.

    A plain function enters and leaves it in its own thread, so that what is released then, such as
    a database session, is released where it was used. A handler in a process is returned as it is:
    its process has no application.

    Args:
        handler: The handler.
        app: The application.
    """
    fn = handler.fn
    if inspect.isclass(fn) or handler.executor == "process":
        return handler
    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def call_on_loop(*args: Any, **kwargs: Any) -> object:
            with app.app_context():
                return await fn(*args, **kwargs)

        return dataclasses.replace(handler, fn=call_on_loop)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> object:
        with app.app_context():
            return fn(*args, **kwargs)

    return dataclasses.replace(handler, fn=call)
