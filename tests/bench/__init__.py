"""Benchmarks, run by `nox -s bench`.

`nox -s bench` compares aioqless with other job queues, `-- steady` with BullMQ only; `-- scale`,
`-- micro`, `-- durable`, `-- cost` and `-- kill` measure aioqless (`kill` also the others, `micro`
BullMQ).

    __main__.py   the command line
    meters.py     measurements in a job and of processes
    server.py     a dedicated Redis and its measurements
    driver.py     what a driver does, and timing on the client's side
    drivers/      one driver for each queue library
    peers.py      the queue libraries: installation, configuration, processes
    phases.py     what is measured of each library: puts, drains, pickup latency
    steady.py     jobs that arrive one by one, beside BullMQ
    kill.py       recovery of a running job after its worker was killed
    scale.py      a million jobs, many states, several workers
    micro.py      the cost of each command in Redis
    durable.py    what steps and output cost Redis
    cost.py       where the processor time of one job is spent
    report.py     results as JSON, and as tables in the docs
    chart.py      results as charts

Needs Linux: processor time is read from /proc. Every library's own environment imports `meters` and
`driver`, so this file and those two need only the standard library.
"""
