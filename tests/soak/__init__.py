"""Mixed load for as long as one likes: nothing may grow. `nox -s soak`, and a minute of it among
the tests.

jobs.py      the handlers
load.py      all that clients do, again and again
gauges.py    what a process and Redis take, and whether it grows
run.py       a worker's process, a client, and gauges that are read meanwhile
__main__.py  the command line
"""
