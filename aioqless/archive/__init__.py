"""The archive: each job that ends is appended to a stream by the scripts themselves; here is what reads it. No Spark is needed for that.

event.py    an entry as a typed record
"""

from aioqless.archive.event import ENDS, VERSION, Event, Run, Unreadable, micros, parse, parse_raw

__all__ = ["ENDS", "VERSION", "Event", "Run", "Unreadable", "micros", "parse", "parse_raw"]
