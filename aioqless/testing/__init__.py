"""Test handlers and what they put.

perform.py   perform    one handler, with no Redis
drain.py     drain      whatever is ready in some queues, by a real worker on a real Redis, until nothing is left
clock.py     Clock      time that moves when it is told to
heard.py     heard      wait for what happens, instead of sleeping
server.py    server     a Redis that ends with the tests
plugin.py               these as fixtures of pytest: aioqless_url, aioqless_clock, aioqless_client
"""

from aioqless.testing.clock import Clock
from aioqless.testing.drain import drain
from aioqless.testing.heard import Heard, heard
from aioqless.testing.perform import Performed, perform
from aioqless.testing.server import server

__all__ = ["Clock", "Heard", "Performed", "drain", "heard", "perform", "server"]
