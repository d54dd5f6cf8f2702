"""How many files, sockets and pipes a process may have open."""

from __future__ import annotations

import sys

from aioqless.errors import AioqlessError

FEWEST = 64  # an idle worker has about 25; beside them what handlers open
PER_PROCESS = 4  # of a supervisor


def descriptor_limit() -> int | None:
    """The limit of this process; None where there is none, or none can be read."""
    if sys.platform == "win32":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def check_descriptor_limit(processes: int) -> None:
    """Raises AioqlessError when the limit is too low for a worker, or for a supervisor of this
    number of processes."""
    limit, fewest = descriptor_limit(), FEWEST + PER_PROCESS * processes
    if limit is not None and limit < fewest:
        raise AioqlessError(
            f"this process may open {limit} file descriptors (ulimit -n), and a worker needs at least {fewest}, beside what its handlers "
            "open: raise the limit (`ulimit -n 1024` in the shell, LimitNOFILE=1024 in a systemd unit, `docker run --ulimit nofile=1024`)"
        )


def exhausted() -> str:
    """What to do when there are no more."""
    return (
        f"no more file descriptors: this process may open {descriptor_limit()} (ulimit -n). Raise the limit, or look for handlers that "
        "open files or connections and don't close them"
    )
