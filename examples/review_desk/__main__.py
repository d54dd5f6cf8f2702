"""Serve the desk until told to stop."""

from __future__ import annotations

import argparse
import secrets
import signal
import socket
import sys

import uvicorn

from aioqless.runtime import log

from .app import application


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m examples.review_desk",
        description="People review docstrings, machines help.",
    )
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument(
        "--limit",
        type=float,
        default=90,
        help="seconds that a person has for one item (default: 90)",
    )
    asked = parser.parse_args()
    log.write_to(sys.stderr)
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(0)
    )  # uvicorn raises it again when it has ended in good order
    startup_token = secrets.token_urlsafe(24)
    listening = socket.create_server(("127.0.0.1", asked.port))
    print(f"Open http://127.0.0.1:{listening.getsockname()[1]}/?token={startup_token}", flush=True)
    config = uvicorn.Config(
        application(startup_token, limit=asked.limit), ws="none", timeout_graceful_shutdown=2
    )
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
