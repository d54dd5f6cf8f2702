"""Handlers with `executor="process"`: a pool of processes that run them.

pool.py          ProcessPool   gives each job to a free process
child.py         Child         one process as the worker sees it: start, perform, stop, kill
child_main.py                  the same process from inside
ipc.py                         the messages between the two, and how they are packed
context_vars.py                which context variables are passed on

As in a thread, a call returns when the code has stopped, not before.
"""

from aioqless.contrib.process_pool.pool import ProcessPool

__all__ = ["ProcessPool"]
