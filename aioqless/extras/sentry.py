"""Errors that handlers raise, to Sentry. Needs `aioqless[sentry]`, and `sentry_sdk.init(...)` in a module of your own.

`Retry` and `Fail` are a handler's own decisions and aren't reported. A job's data are never sent.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aioqless import Fail, Job, Retry, around
from aioqless.errors import require_extra
from aioqless.handlers import Call

with require_extra("sentry"):
    import sentry_sdk


@around
async def reported(job: Job[Any], call: Call) -> Any:
    """Each run in a scope of its own, named after the klass."""
    with sentry_sdk.isolation_scope() as scope:
        scope.set_transaction_name(job.klass)
        scope.set_tags({"aioqless.klass": job.klass, "aioqless.queue": job.queue})
        scope.set_context("job", {"jid": job.jid, "queue": job.queue, "worker": job.worker, "remaining": job.remaining, "tags": job.tags})
        try:
            return await call()
        except (Retry, Fail, asyncio.CancelledError):
            raise
        except BaseException as error:
            sentry_sdk.capture_exception(error)
            raise
