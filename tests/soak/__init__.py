"""Mixed load for a chosen time, after which nothing may have grown.

`nox -s soak` runs it; a minute of it is among the tests.

    jobs.py      the handlers
    load.py      the calls of clients, repeated
    gauges.py    resources of a process and of Redis, and whether they grow
    run.py       a worker process, a client, and repeated readings of the gauges
    __main__.py  the command line
"""
