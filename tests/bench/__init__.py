"""Measurements: `nox -s bench`, beside other job queues; `-- scale`, `-- micro`, `-- cost`, `--
kill`, of this one alone.

    __main__.py   the command line
    meters.py     what is read in a job and of processes
    server.py     a Redis of its own, and what is read of it
    driver.py     what a driver does, and the client's clock around it
    drivers/      one for each queue that is measured
    peers.py      who is measured: what to install, how it is set up, its processes
    phases.py     what is measured of each: puts, drains, pick-up
    kill.py       what becomes of a job whose worker is killed
    scale.py      a million jobs, many states, several workers
    micro.py      what a command costs Redis
    cost.py       where the time of one job goes
    report.py     figures as JSON, and as tables in the docs
    chart.py      figures as pictures

Needs Linux: processor time is read from /proc. Imported in every peer's own environment, so this
file, `meters` and `driver` need the standard library alone."""
