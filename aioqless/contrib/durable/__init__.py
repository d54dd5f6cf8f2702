"""Jobs that outlive their worker: steps and cursors.

run.py       DurableRun    what one run stores, behind the methods of a Job
cursor.py    Cursor        a position in a list of items
values.py    ValueType     how values are written and read
commands.py                the scripts in lua/
"""

from aioqless.contrib.durable.cursor import Cursor
from aioqless.contrib.durable.run import DurableRun, read_steps

__all__ = ["Cursor", "DurableRun", "read_steps"]
