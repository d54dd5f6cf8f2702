"""Serve the pages until SIGTERM or SIGINT; running jobs have ten seconds to finish."""

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
        description="Draw pictures in jobs, and watch their progress.",
    )
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument(
        "--no-worker", action="store_true", help="leave the jobs to a worker elsewhere"
    )
    arguments = parser.parse_args()
    log.write_to(sys.stderr)
    # uvicorn raises the signal again after its graceful shutdown.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # Event streams are requests without an end: they are closed after two seconds.
    uvicorn.run(
        application(with_worker=not arguments.no_worker),
        port=arguments.port,
        ws="none",
        timeout_graceful_shutdown=2,
    )


if __name__ == "__main__":
    main()
