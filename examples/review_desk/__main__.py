"""Serve the review desk until SIGTERM or SIGINT."""

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
    arguments = parser.parse_args()
    log.write_to(sys.stderr)
    # uvicorn raises the signal again after its graceful shutdown.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    link_token = secrets.token_urlsafe(24)
    listening = socket.create_server(("127.0.0.1", arguments.port))
    print(f"Open http://127.0.0.1:{listening.getsockname()[1]}/?token={link_token}", flush=True)
    config = uvicorn.Config(
        application(link_token, limit=arguments.limit), ws="none", timeout_graceful_shutdown=2
    )
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
