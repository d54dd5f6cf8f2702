"""The command line: the only place that knows of argv, environment, signals and exit codes."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import msgspec
import typer
from redis import exceptions

from aioqless import log
from aioqless.client import Client
from aioqless.embedded import NoServer
from aioqless.errors import AioqlessError
from aioqless.puts import NewJob
from aioqless.worker import Settings, Worker

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="A job queue on Redis.")

Url = Annotated[str | None, typer.Option("--url", help="Redis to use; default: AIOQLESS_URL, REDIS_URL, else a private server.")]
Namespace = Annotated[str, typer.Option("--namespace", help="The prefix of all keys; ql is that of other qless clients.")]

REFUSED = 1  # what was asked can't be done; the message says why
UNREACHABLE = 3  # Redis can't be reached, or can't be started


def main() -> None:
    """Run the command that argv names, and exit."""
    try:
        app()
    except (AioqlessError, ValueError, TypeError) as error:
        sys.exit(_told(error, REFUSED))
    except (exceptions.RedisError, NoServer) as error:
        sys.exit(_told(error, UNREACHABLE))


def _told(error: Exception, code: int) -> int:
    print(f"aioqless: {error}", file=sys.stderr)
    return code


def _run(url: str | None, namespace: str, act: Callable[[Client], Awaitable[None]]) -> None:
    async def connected() -> None:
        async with Client(url, namespace=namespace) as client:
            await act(client)

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(connected())


def _show(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


@app.command()
def worker(
    jobs: Annotated[list[str], typer.Argument(help="Modules with handlers, such as app.jobs.")],
    queue: Annotated[list[str] | None, typer.Option("-q", "--queue", help="A queue to serve, in order of preference; repeatable.")] = None,
    concurrency: Annotated[int, typer.Option("-c", "--concurrency", help="Jobs at once.")] = Settings.concurrency,
    round_robin: Annotated[bool, typer.Option("--round-robin", help="One job from each queue in turn, not the first queue first.")] = False,
    poll: Annotated[float, typer.Option(help="Seconds between looks at empty queues.")] = Settings.poll,
    grace: Annotated[float, typer.Option(help="Seconds to finish in when told to stop.")] = Settings.grace,
    threads: Annotated[int, typer.Option(help="Plain functions at once.")] = Settings.threads,
    name: Annotated[str | None, typer.Option(help="The worker's name; default: host-pid-nonce.")] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    log_json: Annotated[bool | None, typer.Option("--log-json/--log-console", help="Default: JSON unless on a terminal.")] = None,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Perform jobs. SIGTERM or SIGINT: finish what runs, hand back the rest; a second one: end at once."""
    log.write_to(level=log_level, as_json=log_json)
    sys.path.insert(0, str(Path.cwd()))
    settings = Settings(
        queues=tuple(queue or ("default",)), round_robin=round_robin, concurrency=concurrency, poll=poll, grace=grace, threads=threads
    )

    handlers = [_imported(module) for module in jobs]

    async def work(client: Client) -> None:
        log.log.info("redis.used", **client.where)
        worker = Worker(client, *handlers, settings=settings, name=name)
        _obey_signals(worker)
        await worker.run()

    _run(url, namespace, work)


def _imported(module: str) -> ModuleType:
    """A module with handlers. One that isn't there is refused; what breaks within one is told with its traceback."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if not f"{module}.".startswith(f"{missing.name}."):
            raise
        raise AioqlessError(f"there is no module {module!r} in {Path.cwd()} nor among those installed") from None


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # no uvloop on this platform
        return None
    return uvloop.new_event_loop


def _obey_signals(worker: Worker) -> None:
    """The first signal drains, the second ends the process: what it held runs elsewhere when its locks expire."""
    told = False

    def obey(number: signal.Signals) -> None:
        nonlocal told
        if told:
            os._exit(128 + number)
        told = True
        worker.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, obey, number)


@app.command()
def put(
    queue: str,
    klass: str,
    data: Annotated[str, typer.Argument(help="JSON.")] = "null",
    jid: Annotated[str | None, typer.Option(help="Default: a new one.")] = None,
    delay: Annotated[float, typer.Option(help="Seconds.")] = 0,
    priority: Annotated[float | None, typer.Option(help="Lower runs sooner.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Repeatable.")] = None,
    retries: Annotated[int | None, typer.Option()] = None,
    depends: Annotated[list[str] | None, typer.Option(help="A jid to wait for; repeatable.")] = None,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Put a job; prints its jid."""

    async def act(client: Client) -> None:
        new = NewJob(klass, msgspec.Raw(data.encode()), jid=jid, delay=delay, priority=priority, tags=tag, retries=retries, depends=depends)
        print(await client.queue(queue).put(new))

    _run(url, namespace, act)


@app.command()
def get(jid: str, url: Url = None, namespace: Namespace = "ql") -> None:
    """Show a job."""

    async def act(client: Client) -> None:
        record = await client.scripts("get", jid=jid)
        if record is None:
            raise AioqlessError(f"there is no job {jid!r}")
        _show(record)

    _run(url, namespace, act)


@app.command()
def queues(url: Url = None, namespace: Namespace = "ql") -> None:
    """Show how many jobs each queue has in each state."""

    async def act(client: Client) -> None:
        columns = ("name", "waiting", "running", "stalled", "scheduled", "depends", "recurring", "paused")
        print("".join(f"{column:>11}" if index else f"{column:<24}" for index, column in enumerate(columns)))
        for counts in await client.queues():
            print("".join(f"{counts[column]!s:>11}" if index else f"{counts[column]:<24}" for index, column in enumerate(columns)))

    _run(url, namespace, act)


@app.command()
def failed(
    group: Annotated[str | None, typer.Argument(help="Show the jobs of this group.")] = None, url: Url = None, namespace: Namespace = "ql"
) -> None:
    """Show how many jobs failed in each group, or what went wrong in one."""

    async def act(client: Client) -> None:
        if group is None:
            for name, count in sorted((await client.jobs.failed()).items()):
                print(f"{count:>8}  {name}")
            return
        total, jobs = await client.jobs.failed_in(group)
        for job in jobs:
            print(f"{job.jid}  {job.klass}  {job.raw_data[:120]}\n{job.failure.message if job.failure else ''}\n")
        print(f"{len(jobs)} of {total}")

    _run(url, namespace, act)


@app.command()
def unfail(
    queue: str,
    group: str,
    count: Annotated[int, typer.Option(help="How many at most.")] = 1000,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Let failed jobs of a group run again, in a queue."""

    async def act(client: Client) -> None:
        print(await client.queue(queue).unfail(group, count))

    _run(url, namespace, act)


@app.command()
def check(
    resolve: Annotated[bool, typer.Option("--resolve", help="Mend what is found, losing no job.")] = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Look for what can't be right in the namespace; exit code 1 when something was found and not mended."""
    problems: list[dict[str, Any]] = []

    async def act(client: Client) -> None:
        problems.extend(await client.check(resolve=resolve))

    _run(url, namespace, act)
    for problem in problems:
        print(json.dumps(problem, ensure_ascii=False))
    print(f"{len(problems)} problems" + (", mended" if resolve and problems else ""), file=sys.stderr)
    if problems and not resolve:
        raise typer.Exit(REFUSED)


@app.command()
def lua(command: str, namespace: Namespace = "ql") -> None:
    """Print a command's script, to call it from elsewhere."""
    from aioqless.compose import compose
    from aioqless.header import command_names

    if command not in command_names():
        raise AioqlessError(f"there is no command {command!r}; there are {', '.join(command_names())}")
    print(compose(command, namespace).text)
