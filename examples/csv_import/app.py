"""The web application: a page to upload a file on, and a page for each import."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, StreamingResponse

import aioqless
from aioqless.errors import NoSuchSet

from .jobs import load, report

PAGE = Path(__file__).with_name("page.html")
SHOWN = 20
# Of this user alone, and there after a restart, as the jobs are.
FOLDER = os.environ.get("IMPORTS") or str(Path.home() / ".cache" / "aioqless-imports")


@contextlib.asynccontextmanager
async def connected(app: FastAPI) -> AsyncIterator[None]:
    """Make the folder of the files, and connect a client while the application runs."""
    await asyncio.to_thread(Path(FOLDER).mkdir, mode=0o700, parents=True, exist_ok=True)
    async with aioqless.Client() as client:
        app.state.client = client
        yield


app = FastAPI(lifespan=connected)


@app.get("/")
@app.get("/imports/{name}")
async def show() -> FileResponse:
    """Show the page to upload on, or that of an import."""
    return FileResponse(PAGE)


@app.post("/imports")
async def upload(request: Request) -> dict[str, str]:
    """Store the file, and put the job that puts one for each row."""
    client: aioqless.Client = app.state.client
    name = f"import-{secrets.token_hex(4)}"
    path = Path(FOLDER, f"{name}.upload")
    await asyncio.to_thread(path.write_bytes, await request.body())
    done = report.data(name=name, folder=FOLDER)  # again when all failed rows were retried
    rows = client.job_set(name, then=done, when_ended=done)
    await rows.put(load.data(path=str(path)))
    await rows.close()  # `load` runs in the set, so it may add the rows
    return {"name": name}


@app.get("/imports/{name}/progress")
async def progress(name: str) -> StreamingResponse:
    """Stream the progress, and the rows that have failed."""
    client: aioqless.Client = app.state.client
    rows = client.job_set(name)
    try:
        await rows.status()
    except NoSuchSet:
        raise HTTPException(404, "There is no such import") from None

    async def messages() -> AsyncIterator[str]:
        async for status in rows.follow(interval=0.5):
            failed = []
            if status.has_ended:
                async with contextlib.aclosing(rows.jids("failed")) as jids:
                    async for jid in jids:
                        failed.append(jid.removeprefix(f"{name}-"))
                        if len(failed) == SHOWN:
                            break
            shown = {
                **{"progress": status.progress, "complete": status.complete},
                **{"failed": status.failed, "canceled": status.canceled, "open": status.open},
                **{"groups": status.groups, "rows": failed, "ended": status.has_ended},
            }
            yield f"data: {json.dumps(shown)}\n\n"

    return StreamingResponse(messages(), media_type="text/event-stream")


@app.post("/imports/{name}/cancel")
async def cancel(name: str) -> dict[str, int]:
    """Cancel the rows that are not done."""
    client: aioqless.Client = app.state.client
    return {"canceled": await client.job_set(name).cancel()}


@app.post("/imports/{name}/retry")
async def retry(name: str) -> dict[str, int]:
    """Retry the rows that have failed."""
    client: aioqless.Client = app.state.client
    return {"retried": await client.job_set(name).retry_failed()}


@app.get("/imports/{name}/results.csv")
def results(name: str) -> FileResponse:
    """Return the file of results, when the report has written it."""
    path = Path(FOLDER, f"{Path(name).name}.csv")
    if not path.exists():
        raise HTTPException(404, "The results are not there yet")
    return FileResponse(path)
