"""`aioqless worker`: the only place that knows of signals."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from aioqless import log
from aioqless.cli.app import Namespace, Url, app, run
from aioqless.client import Client
from aioqless.errors import AioqlessError
from aioqless.worker import Settings, Subscription, Worker
from aioqless.worker.subscriptions import ORDERS


@app.command()
def worker(
    jobs: Annotated[list[str], typer.Argument(help="Modules with handlers, such as app.jobs.")],
    queue: Annotated[
        list[str] | None,
        typer.Option(
            "-q", "--queue", help="A queue to serve: mail, reports=4 (at most 4 at once), urgent,5 (weight), 'mail-*'; repeatable."
        ),
    ] = None,
    concurrency: Annotated[int, typer.Option("-c", "--concurrency", help="Jobs at once.")] = Settings.concurrency,
    order: Annotated[str, typer.Option(help=f"Which queue is asked first: {', '.join(ORDERS)}.")] = Settings.order,
    poll: Annotated[float, typer.Option(help="Seconds between looks at empty queues.")] = Settings.poll,
    grace: Annotated[float, typer.Option(help="Seconds to finish in when told to stop.")] = Settings.grace,
    stuck_after: Annotated[
        float, typer.Option(help="Seconds of a blocked loop, after which locks are kept no more.")
    ] = Settings.stuck_after,
    threads: Annotated[int, typer.Option(help="Plain functions at once.")] = Settings.threads,
    processes: Annotated[int, typer.Option(help="Handlers with executor='process' at once; default: the processors.")] = Settings.processes,
    max_jobs_per_process: Annotated[int | None, typer.Option(help="Then another process takes its place; default: never.")] = None,
    kill_after: Annotated[float, typer.Option(help="Seconds until a process that was told to stop is killed.")] = Settings.kill_after,
    scheduler: Annotated[bool, typer.Option("--scheduler/--no-scheduler", help="Declare recurring jobs, tick cron.")] = Settings.scheduler,
    name: Annotated[str | None, typer.Option(help="The worker's name; default: host-pid-nonce.")] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    log_json: Annotated[bool | None, typer.Option("--log-json/--log-console", help="Default: JSON unless on a terminal.")] = None,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Perform jobs. SIGTERM or SIGINT: finish what runs, hand back the rest; a second one: end at once."""
    log.write_to(level=log_level, as_json=log_json)
    settings = _settings(locals())
    sys.path.insert(0, str(Path.cwd()))
    handlers = [_imported(module) for module in jobs]

    async def work(client: Client) -> None:
        log.log.info("redis.used", **client.where)
        worker = Worker(client, *handlers, settings=settings, name=name)
        _obey_signals(worker)
        await worker.run()

    run(url, namespace, work)


def _settings(given: dict[str, Any]) -> Settings:
    """What was given on the command line: an option that is named like one of the settings is that one."""
    queues = tuple(Subscription.read(text) for text in given["queue"] or ("default",))
    return Settings(queues=queues, **{name: given[name] for name in Settings.__dataclass_fields__ if name in given})


def _imported(module: str) -> ModuleType:
    """A module with handlers. One that isn't there is refused; what breaks within one is told with its traceback."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if not f"{module}.".startswith(f"{missing.name}."):
            raise
        raise AioqlessError(f"there is no module {module!r} in {Path.cwd()} nor among those installed") from None


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
