"""JobRequest: a request whose sender is known."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from aioqless.client import Client
from aioqless.client.generated_jid import generate_jid
from aioqless.client.job import JobRecord
from aioqless.client.job_set import JobSet
from aioqless.contrib.http import Identification
from aioqless.contrib.http.json_api import RequestRefused
from aioqless.contrib.http.router import ApiRequest
from aioqless.contrib.http_api.grant import Grant

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

    @classmethod
    def of(cls, client: Client, request: ApiRequest) -> JobRequest:
        """Return what a request is about; raise RequestRefused for a sender without jobs."""
        return cls(
            client,
            request.identification,
            Grant(request.identity),
            request.path,
            request.query,
            request.body,
            request.key,
        )

    def own_name(self, name: str) -> str:
        """Return the name in Redis of what this token names: others can't have it."""
        return f"{self.grant.owner}-{name}"

    def new_jid(self) -> str:
        """Return a new jid, or that of the idempotency key."""
        name = generate_jid() if self.key is None else _digest(self.key.encode())
        return self.own_name(name)

    def body_digest(self, klass: str) -> str:
        """Return what tells the body, the options and the klass from others."""
        told = [klass, msgspec.to_builtins(self.query), self.body]
        return _digest(msgspec.json.encode(told, order="deterministic"))

    @property
    def job_set(self) -> JobSet:
        """The job set that the path or the query names."""
        return self.client.job_set(self.own_name(self.path.get("name") or self.query.set))

    async def job(self, *, change: bool = False) -> JobRecord:
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


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:32]
