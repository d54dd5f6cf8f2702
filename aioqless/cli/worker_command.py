"""Runs `aioqless worker`: a worker, or a supervisor of several worker processes."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import cast

from aioqless.cli.extension_loader import METRICS, load_supervisor
from aioqless.cli.open_file_limit import check_open_file_limit
from aioqless.cli.worker_options import WorkerOptions, parse_options
from aioqless.cli.worker_process import WorkerProcess
from aioqless.errors import AioqlessError
from aioqless.handlers import Handlers, Source
from aioqless.runtime import log
from aioqless.worker import ReconnectDelays, Settings, Subscription
from aioqless.worker.subscriptions import Order, find_unserved


@dataclass(frozen=True, kw_only=True)
class Host:
    """A program of which a worker is a command, such as Django's manage.py.

    Attributes:
        program: how its users call the command.
        collect: returns what the worker runs, with the modules that were named, if any.
        queues: Queues to serve besides those of the handlers, if no option names any.
        url: where Redis is, where no URL is given.
        namespace: the prefix of all keys, where none is given.
        own_words: how many of the last words of the command line are its own options.
    """

    program: str
    collect: Callable[[Sequence[ModuleType]], Sequence[Source]]
    queues: Sequence[str] = ()
    url: str | None = None
    namespace: str | None = None
    own_words: int = 0


def run_worker(arguments: Sequence[str], host: Host | None = None) -> int:
    """Run what the words behind `aioqless worker` ask for; return the exit code.

    Args:
        arguments: the last words of the process' command line.
        host: the program, if it is another.

    Raises:
        AioqlessError, ValueError: an option or a module is refused; the message says why.
    """
    if host is None:
        options = parse_options(arguments)
    else:
        options = parse_options(
            arguments, program=host.program, url=host.url, namespace=host.namespace
        )
    if host is None or not logging.getLogger().hasHandlers():  # else the project configured them
        log.write_to(
            level=options.log_level, as_json=options.log_json, process=options.process_number
        )
    settings = _read_settings(options)
    if options.process_number is None and (options.workers or options.reload):
        processes = options.workers or 1
        check_open_file_limit(processes)
        return load_supervisor()(
            partial(_process_command, len(arguments) + (host.own_words if host else 0)),
            processes=processes,
            shutdown_timeout=options.shutdown_timeout + options.kill_after,
            burst=options.burst,
            reload=options.reload,
            health=options.health,
            metrics=options.metrics,
        )
    extensions = [METRICS] if options.metrics else []
    modules = [import_module(name) for name in [*options.modules, *extensions]]
    sources = host.collect(modules) if host else modules
    handlers = Handlers.collect(*sources)  # raises before Redis is connected
    if host and host.queues and settings.queues is None:
        given = tuple(map(Subscription, host.queues))
        settings = replace(settings, queues=_add_queues(given, handlers))
    elif any(text.startswith("+") for text in options.queue or ()):
        settings = replace(settings, queues=_add_queues(settings.subscriptions, handlers))
    process = WorkerProcess(
        settings=settings,
        name=options.name,
        url=options.url,
        namespace=options.namespace,
        health=options.health,
        metrics=options.metrics,
        number=options.process_number,
        status_fd=options.status_fd,
        paused=options.paused,
        partitions=options.partitions,
    )
    return process.run(sources)


def _add_queues(given: tuple[Subscription, ...], handlers: Handlers) -> tuple[Subscription, ...]:
    """Return these subscriptions, and those to the other queues that handlers name."""
    return (*given, *(Subscription(queue) for queue in find_unserved(handlers.queues, given)))


def _read_settings(options: WorkerOptions) -> Settings:
    queues = options.queue and tuple(
        Subscription.read(text.removeprefix("+")) for text in options.queue
    )
    return Settings(
        queues=queues,
        order=cast(Order, options.order),  # Settings checks it
        concurrency=options.concurrency,
        poll=options.poll,
        shutdown_timeout=options.shutdown_timeout,
        stuck_after=options.stuck_after,
        park_after=options.park_after,
        unknown_klass_delay=options.unknown_klass_delay,
        unknown_klass_timeout=options.unknown_klass_timeout,
        burst=options.burst,
        scheduler=options.scheduler,
        allow_eviction=options.allow_eviction,
        threads=options.threads,
        processes=options.processes,
        max_jobs_per_process=options.max_jobs_per_process,
        kill_after=options.kill_after,
        max_jobs=options.max_jobs,
        max_memory=options.max_memory,
        version_label=options.version_label,
        reconnect=ReconnectDelays(first=options.reconnect, longest=options.reconnect_max),
    )


def _process_command(arguments: int, number: int, status_fd: int, paused: bool) -> list[str]:
    """Return the command line of a process: the supervisor's own, and what only that knows.

    Args:
        arguments: how many words of the supervisor's are those of the worker.
        number: the number of the process.
        status_fd: the descriptor of the socket to the supervisor.
        paused: whether it starts paused.
    """
    after_worker = len(sys.orig_argv) - arguments
    hidden = ["--process-number", str(number), "--status-fd", str(status_fd)]
    if paused:
        hidden.append("--paused")
    return [
        sys.executable,
        *sys.orig_argv[1:after_worker],
        *hidden,
        *sys.orig_argv[after_worker:],
    ]


def import_module(name: str) -> ModuleType:
    """Import a module with handlers, also from the current directory.

    Raises:
        AioqlessError: if it doesn't exist; other errors within it pass with their traceback.
    """
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if not f"{name}.".startswith(f"{missing.name}."):
            raise
        meant = name.partition(":")[0]
        if meant.endswith(".py"):
            meant = ".".join(Path(meant).with_suffix("").parts)
        hint = "" if meant == name else f"; did you mean {meant!r}?"
        raise AioqlessError(
            f"there is no module {name!r} in {Path.cwd()} nor among those installed{hint}"
        ) from None
