"""Serve the pages until told to stop; what is being drawn has ten seconds to be finished."""

from __future__ import annotations

import argparse
import signal
import sys

import uvicorn

from aioqless.runtime import log

from .app import application


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m examples.web",
        description="Draw pictures by jobs, and watch them come into being.",
    )
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument(
        "--no-worker", action="store_true", help="leave the jobs to a worker elsewhere"
    )
    asked = parser.parse_args()
    log.write_to(sys.stderr)
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(0)
    )  # uvicorn raises it again when it has ended in good order
    # Streams of events are requests that don't end: after two seconds they are ended.
    uvicorn.run(
        application(with_worker=not asked.no_worker),
        port=asked.port,
        ws="none",
        timeout_graceful_shutdown=2,
    )


if __name__ == "__main__":
    main()
