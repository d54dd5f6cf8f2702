"""A program that tests run with an earlier version of aioqless.

`earlier_version.py URL NAMESPACE` evaluates one Python expression per line of standard input,
awaits its value if it is awaitable, and prints it as JSON.
"""

import asyncio
import inspect
import json
import sys
from contextlib import AsyncExitStack
from typing import Any

import aioqless
from aioqless import Client, NewJob, Settings, Worker, chain, job
from tests.command_calls import make_call


async def main(url: str, namespace: str) -> None:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(url, namespace=namespace))

        @job(klass="Greet", result_ttl=60)
        async def greet(job: Any) -> str:
            return "earlier"

        @job(klass="Hold", result_ttl=60)
        async def hold(job: Any) -> str:
            await client.redis.blpop(f"{namespace}-released")
            return "earlier"

        async def work(queue: str) -> None:
            """Start a worker that runs until the program ends."""
            settings = Settings(queues=(queue,), concurrency=5, poll=0.05, shutdown_timeout=0)
            worker = Worker(client, greet, hold, settings=settings)
            names["worker"] = await stack.enter_async_context(worker)

        async def result(jid: str) -> Any:
            return await (await client.jobs.get(jid)).result()

        async def read(jid: str, *names: str) -> dict[str, Any]:
            """Return attributes of a job that is in Redis."""
            job = await client.jobs.get(jid)
            return {name: getattr(job, name) for name in names}

        async def call(command: str, form: str | None, **arguments: Any) -> Any:
            """Call a command of the state machine."""
            return await make_call(client.internals.store, command, form, **arguments)

        names = {"aioqless": aioqless, "client": client, "NewJob": NewJob, "chain": chain}
        names |= {"work": work, "result": result, "read": read, "call": call}
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
