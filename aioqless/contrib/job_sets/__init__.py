"""Job sets: jobs that are followed, retried and canceled as one.

commands.py   the scripts in lua/; the core ends members of sets by its lua/lib/members.lua
"""

from aioqless.client.client import Client
from aioqless.client.job import Job
from aioqless.client.job_set import JobSet
from aioqless.contrib.job_sets.commands import JobSetsCommands

__all__ = ["JobSetsCommands", "set_of"]


def set_of(job: Job, name: str) -> JobSet:
    """Return the set that a running job is a member of, to which it may add others.

    Args:
        job: The job.
        name: Name of the set.
    """
    return Client.current().job_set(name).of_member(job.jid, job.fence)
