"""JobRequest: a request whose sender is known."""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from aioqless.client import Client
from aioqless.client.job import Job
from aioqless.client.job_set import JobSet
from aioqless.contrib.http import Identification
from aioqless.contrib.http.json_api import RequestRefused
from aioqless.contrib.http_api.grant import Grant
from aioqless.runtime.tasks import cancel_and_wait

T = TypeVar("T")
KEY_PATTERN = "^[!-~]{1,255}$"
# In the context of a job, which stays: data may be encrypted, and handlers and retries change it.
BODY_DIGEST = "idempotency"


@dataclass(frozen=True)
class JobRequest:
    """A request whose sender is known; query and body are of the operation's types."""

    client: Client
    identification: Identification
    grant: Grant
    path: Mapping[str, str]
    query: Any
    body: Any
    key: str | None

    def own_name(self, name: str) -> str:
        """Return the name in Redis of what this token names: others can't have it."""
        return f"{self.grant.owner}-{name}"

    def new_jid(self) -> str:
        """Return a new jid, or that of the idempotency key."""
        name = secrets.token_hex(16) if self.key is None else _digest(self.key.encode())
        return self.own_name(name)

    def body_digest(self, klass: str) -> str:
        """Return what tells the body, the options and the klass from others."""
        told = [klass, msgspec.to_builtins(self.query), self.body]
        return _digest(msgspec.json.encode(told, order="deterministic"))

    @property
    def job_set(self) -> JobSet:
        """The job set that the path or the query names."""
        return self.client.job_set(self.own_name(self.path.get("name") or self.query.set))

    async def job(self, *, change: bool = False) -> Job:
        """Return the job that the path names, if this token sees it; with `change`, if it owns it.

        A job of others is answered as one that doesn't exist.
        """
        jid = self.path["jid"]
        if self.grant.owns(jid) or (not change and self.grant.may_find(jid)):
            job = await self.client.jobs.get(jid)
            if job is not None and self.grant.may_see(jid, job.klass):
                return job
        raise RequestRefused(404, "gone", "There is no such job, or this token doesn't see it.")

    async def check_repeated(self, jid: str, klass: str) -> None:
        """Refuse the key of a job that was put by another body."""
        job = await self.client.jobs.get(jid)
        if job is None:
            raise RequestRefused(409, "state", "The job of this key was just deleted. Try again.")
        if job.context.get(BODY_DIGEST) != self.body_digest(klass):
            why = "This Idempotency-Key was used for another body, klass or options: take a new one"
            raise RequestRefused(422, "key", f"{why}.")


def read_key(request: Request) -> str | None:
    """Return the idempotency key of a request."""
    keys = request.headers.getlist("idempotency-key")
    if len(keys) > 1 or not all(re.fullmatch(KEY_PATTERN, key) for key in keys):
        why = f"Idempotency-Key must match {KEY_PATTERN}, and be sent once."
        raise RequestRefused(400, "request", why)
    return keys[0] if keys else None


def read_query(request: Request, type_: Callable[..., Any] | None) -> Any:
    """Return the query of a request as a type."""
    if type_ is None:
        return None
    several = {name: request.query_params.getlist(name) for name in request.query_params}
    values = {
        name: each if name == "tags" or len(each) > 1 else each[0] for name, each in several.items()
    }
    try:
        return msgspec.convert(values, type_, strict=False)
    except msgspec.ValidationError as wrong:
        raise RequestRefused(400, "request", str(wrong)) from None


async def run_while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Run what may wait for long, until the client closes its connection."""

    async def wait_for_disconnect() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task, gone = asyncio.create_task(work), asyncio.create_task(wait_for_disconnect())
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise RequestRefused(408, "slow", "The client has closed the connection.")
    except asyncio.CancelledError:  # by the server, whose log should have no traceback of it
        raise RequestRefused(503, "stopped", "The server is shutting down. Try again.") from None
    finally:
        await cancel_and_wait(task, gone)


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:32]
