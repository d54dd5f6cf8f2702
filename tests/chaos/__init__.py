"""Faults strike while jobs flow, and a ledger outside of Redis says what was lost: `nox -s chaos`,
and a short form of it as tests.

ledger.py    what processes saw, a line at a time
jobs.py      the handlers of the workers under fire
producer.py  a process that puts jobs
server.py    the Redis under fire
line.py      a process between everybody and Redis, which spoils what passes
crew.py      who starts another process where one is gone
faults.py    the kinds of faults
trial.py     jobs flow, one kind strikes, what is left is worked off
verdict.py   the ledger, held against Redis
clocks.py    fail-overs to replicas with other clocks
report.py    the tables in docs/faults.md
"""
