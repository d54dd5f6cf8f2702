"""A worker's start."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from aioqless import Client

CODE = """
import asyncio, sys, threading
import aioqless

read_by = set()

def note(event, arguments):
    if event == "open" and "/lua/lib/" in str(arguments[0]):
        read_by.add(threading.current_thread() is threading.main_thread())

@aioqless.job(klass="Greet")
async def greet(job):
    pass

async def main():
    async with aioqless.Client(sys.argv[1], namespace=sys.argv[2]) as client:
        sys.addaudithook(note)
        settings = aioqless.Settings(queues=["mail"], burst=True)
        await aioqless.Worker(client, greet, settings=settings).run()

asyncio.run(main())
assert read_by == {False}, "the libraries were read on the event loop"
"""


async def test_starting_worker_reads_the_scripts_in_a_thread(client: Client) -> None:
    await client.queue("mail").put("Greet", jid="a")
    command = [sys.executable, "-c", CODE, str(client.url), client.namespace]
    ended = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    job = await client.jobs.get("a")
    assert job and job.state == "complete"
