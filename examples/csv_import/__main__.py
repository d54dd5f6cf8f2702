"""Serve the page, with a worker beside it, until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import sys

import uvicorn

import aioqless
from aioqless.runtime import log

from . import jobs
from .app import app

PORT = 8000


async def main() -> None:
    """Run both parts in one process; each could be one of its own."""
    log.write_to(sys.stderr)
    site = uvicorn.Server(uvicorn.Config(app, port=PORT, timeout_graceful_shutdown=2))
    async with aioqless.Client() as client, aioqless.Worker(client, jobs):
        await site.serve()


if __name__ == "__main__":
    asyncio.run(main())
