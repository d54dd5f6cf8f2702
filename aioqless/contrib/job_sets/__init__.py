"""Job sets: jobs that are followed, retried and canceled as one.

generated_commands.py   the scripts in lua/; lua/lib/facts/members.lua of the core ends members
"""

from aioqless.client.client import Client
from aioqless.client.job import Job
from aioqless.client.job_set import JobSet
from aioqless.contrib.job_sets.generated_commands import JobSetsCommands
from aioqless.errors import AioqlessError

__all__ = ["JobSetsCommands", "set_of"]


def set_of(job: Job) -> JobSet:
    """Return the set that a running job is a member of, to which it may add others.

    Args:
        job: The job.

    Raises:
        AioqlessError: It is in none, or no worker runs it.
    """
    if job.set_name is None:
        raise AioqlessError(
            f"job {job.jid!r} is a member of no job set, or no worker runs it: "
            "jobs are put into a set by client.job_set(name).put"
        )
    return Client.current().job_set(job.set_name).of_member(job.jid, job.fence)
