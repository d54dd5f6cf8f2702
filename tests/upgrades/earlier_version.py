"""A program that tests run with an earlier version of aioqless.

`earlier_version.py URL NAMESPACE` evaluates one Python expression per line of standard input,
awaits its value if it is awaitable, and prints it as JSON. It uses the names of the earlier
version.
"""

import asyncio
import inspect
import json
import sys
from contextlib import AsyncExitStack
from typing import Any

import aioqless
from aioqless import Client, NewJob, Settings, Worker, chain, job


async def main(url: str, namespace: str) -> None:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(url, namespace=namespace))

        @job(klass="Greet", keep_result=60)
        async def greet(job: Any) -> str:
            return "earlier"

        @job(klass="Hold", keep_result=60)
        async def hold(job: Any) -> str:
            await client.redis.blpop(f"{namespace}-released")
            return "earlier"

        async def work(queue: str) -> None:
            """Start a worker that runs until the program ends."""
            settings = Settings(queues=(queue,), concurrency=5, poll=0.05, grace=0)
            names["worker"] = Worker(client, greet, hold, settings=settings)
            await stack.enter_async_context(names["worker"])

        async def result(jid: str) -> Any:
            return await (await client.jobs.get(jid)).result()

        async def read(jid: str, *names: str) -> dict[str, Any]:
            """Return attributes of a job that is in Redis."""
            job = await client.jobs.get(jid)
            return {name: getattr(job, name) for name in names}

        names = {"aioqless": aioqless, "client": client, "NewJob": NewJob, "chain": chain}
        names |= {"work": work, "result": result, "read": read}
        answers, sys.stdout = sys.stdout, sys.stderr  # log lines would go to standard output
        while line := await asyncio.to_thread(sys.stdin.readline):
            try:
                value = eval(line, names)
                value = await value if inspect.isawaitable(value) else value
                answer = {"value": value}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer, default=repr), file=answers, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
