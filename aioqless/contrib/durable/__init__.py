"""Jobs that outlive their worker: steps, cursors, signals and sleep.

run.py       DurableRun    what one run stores, behind the methods of a Job
cursor.py    Cursor        a position in a list of items
waits.py     Waits         what a run waits for, and when it parks
values.py    ValueType     how values are written and read
generated_commands.py      the scripts in lua/
"""

from aioqless.contrib.durable.cursor import Cursor
from aioqless.contrib.durable.run import DurableRun, read_steps, send_signal

__all__ = ["Cursor", "DurableRun", "read_steps", "send_signal"]
