"""The live screen of `aioqless top`; needs `pip install "aioqless[top]"`.

app.py         the application
start.py       the first screen: queues, failure groups and workers
jobs.py        the list of the jobs of a queue, failure group or worker
dialogs.py     a question, a job in full, and an editor of its data
live_table.py  a table whose rows change under the cursor
"""

from aioqless.errors import require_extra

with require_extra("top"):
    from aioqless.contrib.top.app import Top

__all__ = ["Top"]
