"""Look at the private server, or stop it: `python -m aioqless.contrib.private_redis status`, `…
stop --force`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import NoServer, running, stop


def main() -> int:
    """Return the process' exit code: 0 when the server runs or was stopped, 1 when it doesn't run,
    2 for an error."""
    parser = argparse.ArgumentParser(
        prog="python -m aioqless.contrib.private_redis", description=__doc__
    )
    parser.add_argument("what", choices=["status", "stop"])
    parser.add_argument(
        "--data", type=Path, help="the data directory; default $AIOQLESS_DATA, else the user's own"
    )
    parser.add_argument("--force", action="store_true", help="stop it even while it is in use")
    asked = parser.parse_args()
    try:
        found = running(asked.data)
        stopped = asked.what == "stop" and stop(asked.data, force=asked.force)
    except NoServer as error:
        print(error, file=sys.stderr)
        return 2
    if stopped:
        print("stopped")
    elif found:
        server, users = found
        print(f"{server.program} at {server.url}, {users} connected, data in {server.data_dir}")
    else:
        print("not running")
    return 0 if stopped or found else 1


if __name__ == "__main__":
    sys.exit(main())
