"""The client: what programs use to put, find and change jobs.

client.py            Client            a connection to one namespace
actor.py             acting_as         who acts, for the archive
url.py               redis_url         the URL of Redis
sync_client.py       SyncClient        a client for code without an event loop
queue.py             Queue             puts, pops, lists and clears jobs
queue_clearing.py    ClearResult       clears a queue in steps
queue_statistics.py  QueueCounts, ...  counts and statistics of queues
new_job.py           NewJob            a job to be put, checked and encoded
jid.py               Jid               the jid of a job that was put, and a handle to the job
put_sender.py        PutSender         sends jobs: the one route of put
put_options.py       PutOptions        the table of options of put, recurring jobs and `@job`
constraints.py                         uniqueness, concurrency limits and rate limits
workflows.py         chain, group      jobs that depend on each other
jobs.py              Jobs              jobs by jid, state or tag
job_set.py           JobSet            jobs that are followed, retried and canceled as one
job/                 Job, JobRecord    jobs that run, and jobs as they were read
job_data.py                            data as JSON
codec.py             Codec             how data and results are stored
json_types.py        JsonType          values of annotated types, pydantic's too
recurring/           RecurringJob      templates of jobs, and cron
workers.py           Workers           workers, and remote control
overview.py          read_overview     queues, workers, failures and rates, read at once
coverage.py          Coverage          which queues workers serve, and why jobs wait
events/              Events            the event stream
archive.py           Archive           the state of the archive stream
config.py            Config            shared configuration
consistency.py       Finding           the consistency check
redis_server.py      Server            state of the Redis server
extensions.py                          where a client reaches extensions
"""

from aioqless.client.actor import acting_as
from aioqless.client.client import Client, worker_name
from aioqless.client.overview import Overview, read_overview
from aioqless.client.url import redis_url
from aioqless.redis.connection import REDIS_UNAVAILABLE, CommandConnection, RedisCommand
from aioqless.store import PutManyRow

__all__ = [
    "REDIS_UNAVAILABLE",
    "Client",
    "CommandConnection",
    "Overview",
    "PutManyRow",
    "RedisCommand",
    "acting_as",
    "read_overview",
    "redis_url",
    "worker_name",
]
