"""Serve the API with a worker beside it, until SIGTERM or SIGINT; print a request to try."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys

import uvicorn

import aioqless
from aioqless.runtime import log

from . import jobs
from .app import make_app


async def main() -> None:
    """Run both in one process; each could be one of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8788)
    port = parser.parse_args().port
    log.write_to(sys.stderr)
    secret = os.environ.get("SHOP_SECRET") or secrets.token_hex(32)
    print(
        f"curl http://127.0.0.1:{port}/klasses/shop.receipt -H 'Authorization: Bearer {secret}' "
        "-H 'Content-Type: application/json' -H 'Idempotency-Key: order-7' "
        """-d '{"order": 7, "lines": [{"name": "tea", "price": 3.5}]}'""",
        flush=True,
    )
    async with aioqless.Client() as client, aioqless.Worker(client, jobs):
        app = make_app(client, secret)
        config = uvicorn.Config(app, port=port, timeout_graceful_shutdown=2)
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    asyncio.run(main())
