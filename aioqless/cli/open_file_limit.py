"""The limit of open file descriptors: files, sockets and pipes."""

from __future__ import annotations

import sys

from aioqless.errors import AioqlessError

MIN_OF_WORKER = 64  # an idle worker has about 25; handlers open more
MIN_PER_PROCESS = 4  # of a supervisor


def open_file_limit() -> int | None:
    """Return the limit of this process; None if there is none, or if it can't be read."""
    if sys.platform == "win32":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def check_open_file_limit(processes: int) -> None:
    """Check the limit for a worker, or for a supervisor of this number of processes.

    Raises:
        AioqlessError: if it is too low.
    """
    limit, minimum = open_file_limit(), MIN_OF_WORKER + MIN_PER_PROCESS * processes
    if limit is not None and limit < minimum:
        raise AioqlessError(
            f"this process may open {limit} file descriptors (ulimit -n), and a worker needs at "
            f"least {minimum}, plus those that its handlers open: raise the limit "
            "(`ulimit -n 1024` in the shell, LimitNOFILE=1024 in a systemd unit, "
            "`docker run --ulimit nofile=1024`)"
        )


def describe_exhaustion() -> str:
    """Return an error message for a process that has used up its file descriptors."""
    return (
        f"no more file descriptors: this process may open {open_file_limit()} (ulimit -n). Raise "
        "the limit, or look for handlers that open files or connections and don't close them"
    )
