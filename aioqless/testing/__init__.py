"""Test handlers and what they put.

perform.py         perform        one handler, without Redis
memory_client.py   MemoryClient   keeps what is put, without Redis
put_jobs.py        put_jobs       what was put
run_jobs.py        run_jobs       all ready jobs of a namespace, by a real worker on a real Redis
clock.py           Clock          a clock that stands still until it is moved
event_recorder.py  record_events  wait for events instead of sleeping
server.py          server         a Redis that ends with the tests
isolation.py       isolate        all clients use that Redis
unittest_mixin.py  RedisTestMixin the same for classes of unittest
plugin.py                         pytest fixtures: aioqless_url, aioqless_redis, aioqless_clock,
                                  aioqless_client, aioqless_memory_client
"""

from aioqless.testing.clock import Clock
from aioqless.testing.event_recorder import EventRecorder, record_events
from aioqless.testing.isolation import isolate
from aioqless.testing.memory_client import MemoryClient, PutJob
from aioqless.testing.perform import Performed, perform, perform_bulk, perform_sync
from aioqless.testing.put_jobs import put_jobs
from aioqless.testing.run_jobs import run_jobs
from aioqless.testing.server import server
from aioqless.testing.unittest_mixin import RedisTestMixin
from aioqless.worker.outcome import RunCompleted, RunFailed, RunReleased, RunRetried

__all__ = [
    "Clock",
    "EventRecorder",
    "MemoryClient",
    "Performed",
    "PutJob",
    "RedisTestMixin",
    "RunCompleted",
    "RunFailed",
    "RunReleased",
    "RunRetried",
    "isolate",
    "perform",
    "perform_bulk",
    "perform_sync",
    "put_jobs",
    "record_events",
    "run_jobs",
    "server",
]
