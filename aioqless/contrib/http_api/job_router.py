"""The router for jobs."""

from __future__ import annotations

from functools import partial

from aioqless.client import Client
from aioqless.contrib.http import Tokens
from aioqless.contrib.http.identity import matches
from aioqless.contrib.http.router import Router
from aioqless.contrib.http_api.handler_types import PydanticSchemas
from aioqless.contrib.http_api.job_request import JobRequest
from aioqless.contrib.http_api.operations import operations_of
from aioqless.handlers import Handlers, Source


def job_router(client: Client, handlers: Source) -> Router:
    """Return the operations that put, read and change jobs, for `create_api`.

    Args:
        client: A client of a namespace without partitions.
        handlers: Handlers whose jobs can be put, and modules of them.

    Raises:
        TypeError: The client has partitions, or a handler's annotation can't be resolved.
        ValueError: A handler can't be served.
    """
    if hasattr(type(client), "partitions"):
        raise TypeError(
            "the HTTP API serves no namespace with partitions, whose jids say where a job is: give "
            "it a Client of a namespace of its own"
        )
    known = Handlers.collect(handlers)
    for handler in known:
        unique = handler.put_defaults.get("unique")
        if unique is not None and unique.debounce is not None:
            raise ValueError(
                f"{handler.klass} has debounce, which goes without a jid of the caller's, and the "
                "HTTP API gives each job one: leave it out"
            )

    def check_tokens(tokens: Tokens) -> None:
        for token in tokens:
            for pattern in token.may_put:
                if not any(matches(each.klass, [pattern]) for each in known):
                    raise ValueError(f"may_put of token {token.name}: {pattern!r} fits no handler")

    pydantic = PydanticSchemas()
    return Router(
        client=client,
        operations=[each.on(partial(JobRequest.of, client)) for each in operations_of(known)],
        check_tokens=check_tokens,
        describe_type=pydantic.describe,
        components=pydantic.components,
    )
