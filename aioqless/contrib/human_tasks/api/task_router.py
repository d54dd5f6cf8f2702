"""The router for human tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from aioqless import errors, validation
from aioqless.contrib.http.json_api import RequestRefused, refusal_of
from aioqless.contrib.http.openapi import Schema
from aioqless.contrib.http.router import Router
from aioqless.contrib.human_tasks.api.operations import OPERATIONS, TaskRequest
from aioqless.contrib.human_tasks.person import name_of
from aioqless.contrib.human_tasks.task_queue import TaskQueue


def task_router(queues: Mapping[str, TaskQueue]) -> Router:
    """Return the operations of people on task queues, for `create_api`.

    Args:
        queues: Task queues by their names in paths, of one client.

    Raises:
        ValueError: No queues, or a name that can't be in a path.
    """
    for name in queues:
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
            raise ValueError(
                f"the name of a task queue {name!r} must consist of letters, digits, '.', '_' and "
                "'-': it is part of a path"
            )
    if not queues:
        raise ValueError("queues must not be empty: there is nothing to serve")
    queues = dict(queues)

    def parameter(_name: str) -> Schema:
        return {"type": "string", "enum": sorted(queues)}

    return Router(
        client=next(iter(queues.values())).client,
        operations=[
            replace(each, parameter=parameter, takes_tab=True, takes_key=each.method != "GET").on(
                partial(TaskRequest.of, queues)
            )
            for each in OPERATIONS
        ],
        refuse=_refuse,
    )


def _refuse(error: Exception) -> RequestRefused:
    match error:
        case errors.LockLost():
            by = validation.to_text(name_of(error.holder or ""))
            why = f"{by or 'Another person'} has the job, by another reservation than this one."
            return RequestRefused(409, "lost", why, by or None)
        case errors.WrongState():
            why = f"The job is no longer reserved: it is {error.state}."
            return RequestRefused(409, "state", why)
    return refusal_of(error)
