"""Where code runs that does not run on the loop.

thread_pool.py    ThreadPool     plain functions, in threads of the worker's own
process_pool.py   ProcessPool    handlers with executor="process": gives each job to a free process
child.py          Child          one process as the worker sees it: start, perform, stop, kill
child_main.py                    the same process from inside
ipc.py                           the messages between the two, and how they are packed
context_vars.py                  which context variables are passed on

All keep one promise: the call returns when the code has stopped, not before.
"""
