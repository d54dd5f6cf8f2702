"""A handler that runs in a process."""

from aioqless import Job, job


@job(klass="InProcess", executor="process")
def handler(job: Job) -> None:
    job.step("one", int)  # type: ignore[unused-coroutine]
