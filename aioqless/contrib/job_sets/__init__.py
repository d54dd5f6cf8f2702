"""Job sets: jobs that are followed, retried and canceled as one.

generated_commands.py   the scripts in lua/; lua/lib/facts/members.lua of the core ends members
"""

from aioqless.client.client import Client
from aioqless.client.job import Job
from aioqless.client.job_set import JobSet
from aioqless.contrib.job_sets.generated_commands import JobSetsCommands

__all__ = ["JobSetsCommands", "set_of"]


def set_of(job: Job, name: str) -> JobSet:
    """Return the set that a running job is a member of, to which it may add others.

    Args:
        job: The job.
        name: Name of the set.
    """
    return Client.current().job_set(name).of_member(job.jid, job.fence)
