"""Fault injection: faults strike under load, and a ledger outside of Redis shows what was lost.

`nox -s chaos` runs all faults; a short form is among the tests.

    ledger.py         records of all processes, one line each
    jobs.py           the handlers of the workers
    producer.py       a process that puts jobs
    server.py         the Redis server, which is killed and suspended
    proxy_process.py  a process between all clients and Redis that disturbs the traffic
    processes.py      the worker and producer processes, which are replaced when they end
    readers.py        readers of output, which are cut off
    faults.py         the kinds of faults
    trial.py          one trial: load, faults of one kind, draining
    verdict.py        compares the ledger with Redis
    clocks.py         failover to replicas with other clocks
    report.py         the tables in docs/faults.md
"""
