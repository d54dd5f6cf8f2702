"""Run the agent, and ask on the terminal for the approval."""

from __future__ import annotations

import asyncio
import sys

from aioqless import Client, Worker

from . import jobs, model


async def main(question: str) -> None:
    """Ask a question, and approve what the agent wants to send."""
    with model.serve() as url:
        async with Client(namespace="agent") as client, Worker(client, jobs):
            jid = await client.put(jobs.research.data(question=question, model=url))
            end = asyncio.create_task(client.jobs.result(jid, timeout=600))
            while not end.done():
                await asyncio.wait([end], timeout=0.2)
                found = await client.jobs.get(jid)
                waits = found.held_back.waits_for if found and found.held_back else ()
                for name in (each.removeprefix("wait:") for each in waits):
                    text = await asyncio.to_thread(input, "The agent wants to send. OK? [y/n] ")
                    approval = jobs.Approval(ok=text == "y", by="you")
                    await client.jobs.signal(jid, name, approval)
            print(await end)


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "rust in tea kettles"))
