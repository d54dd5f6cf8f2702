"""Serve the pages and the model, with a worker beside them, until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import os
import sys

import uvicorn

import aioqless
from aioqless.runtime import log

from . import jobs
from .app import app
from .model import app as model

PORT, MODEL_PORT = 8000, 8001


async def main() -> None:
    """Run all parts in one process; each could be one of its own."""
    log.write_to(sys.stderr)
    os.environ["MODEL_URL"] = f"http://127.0.0.1:{MODEL_PORT}"
    of_model = uvicorn.Server(uvicorn.Config(model, port=MODEL_PORT, log_level="warning"))
    site = uvicorn.Server(uvicorn.Config(app, port=PORT, timeout_graceful_shutdown=2))
    running = asyncio.create_task(of_model.serve())
    async with aioqless.Client() as client, aioqless.Worker(client, jobs):
        await site.serve()
    of_model.should_exit = True
    await running


if __name__ == "__main__":
    asyncio.run(main())
