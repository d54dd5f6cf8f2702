"""What every process of aioqless needs, whatever it runs.

forks.py             guard_loop       children of os.fork that return from their handler
log.py               log, write_to    log events, and how commands write them
standard_streams.py                   standard output and error that never block for long
os_signals.py        handle, hold     signal handlers that forked children don't inherit
tasks.py             cancel_and_wait  waiting for events and for canceled tasks
"""
