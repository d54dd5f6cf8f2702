"""The OPTIONS of a backend in Django's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Literal, get_args

from django.core.exceptions import ImproperlyConfigured

from aioqless import SyncClient
from aioqless.handlers import JobOptions

Enqueue = Literal["now", "on_commit", "outbox"]
RESULT_TTL = 86_400.0  # seconds


@dataclass(frozen=True, kw_only=True)
class BackendOptions:
    """The OPTIONS of a backend.

    Attributes:
        url: Where Redis is, as in `aioqless.Client`.
        namespace: Prefix of all keys, as in `aioqless.Client`.
        timeout: Seconds for one call of Redis when a task is enqueued or its result is read.
        enqueue: When a task is put: "now"; "on_commit", when the current transaction commits; or
            "outbox", as a row of the current transaction, which a worker puts after the commit.
        database: The alias of the database whose transactions count.
        job_options: Options of `@aioqless.job` for all tasks.
        dashboard_url: Where the dashboard is, to which the admin page links.
    """

    url: str | None = None
    namespace: str | None = None
    timeout: float | None = None
    enqueue: Enqueue = "now"
    database: str = "default"
    job_options: JobOptions = field(default_factory=JobOptions)
    dashboard_url: str | None = None

    @classmethod
    def read(cls, alias: str, options: Mapping[str, Any]) -> BackendOptions:
        """Read the OPTIONS of a backend.

        Raises:
            ImproperlyConfigured: An option is unknown, or has a wrong value.
        """
        known = [each.name for each in fields(cls)]
        where = f"TASKS[{alias!r}]['OPTIONS']"
        if unknown := [name for name in options if name not in known]:
            raise ImproperlyConfigured(
                f"{where} has no option {', '.join(map(repr, unknown))}; it has {', '.join(known)}"
            )
        found = cls(**options)
        if found.enqueue not in (modes := get_args(Enqueue)):
            raise ImproperlyConfigured(
                f"{where}['enqueue'] must be one of {', '.join(modes)} (got {found.enqueue!r})"
            )
        try:
            found.client()
        except (TypeError, ValueError) as error:
            raise ImproperlyConfigured(f"{where}: {error}") from None
        return found

    def client(self) -> SyncClient:
        """Return the client of this process, which all its threads share."""
        return _client(self.url, self.namespace, self.timeout)


@lru_cache
def _client(url: str | None, namespace: str | None, timeout: float | None) -> SyncClient:
    return SyncClient(url, namespace=namespace, timeout=timeout)
