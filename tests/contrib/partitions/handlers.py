"""A handler for workers in processes of their own."""

from __future__ import annotations

from typing import Any

from aioqless import Job, job


@job(klass="examples.noop")
async def noop(job: Job[Any]) -> None: ...
