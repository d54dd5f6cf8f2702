"""Runs `aioqless worker`: a worker, or a supervisor of several worker processes."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from types import ModuleType

from aioqless.cli.open_file_limit import check_open_file_limit
from aioqless.cli.worker_options import WorkerOptions, parse_options
from aioqless.cli.worker_process import WorkerProcess
from aioqless.client import extensions, worker_name
from aioqless.errors import AioqlessError
from aioqless.handlers import Handlers, Source
from aioqless.runtime import log
from aioqless.worker import ReconnectDelays, Settings, Subscription
from aioqless.worker.subscriptions import find_unserved


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
        words = len(arguments) + (host.own_words if host else 0)
        supervise: Callable[..., int] = extensions.load("supervisor.run").supervise
        command = partial(_process_command, words, None if options.name else worker_name())
        return supervise(command, processes, options)
    modules = [*map(import_module, options.modules)]
    if options.metrics:
        modules.append(extensions.load("telemetry.prometheus"))
    sources = host.collect(modules) if host else modules
    handlers = Handlers.collect(*sources)  # raises before Redis is connected
    if host and host.queues and settings.queues is None:
        given = tuple(map(Subscription, host.queues))
        settings = replace(settings, queues=_add_queues(given, handlers))
    elif any(text.startswith("+") for text in options.queue or ()):
        settings = replace(settings, queues=_add_queues(settings.subscriptions, handlers))
    return WorkerProcess(options, settings).run(sources)


def _add_queues(given: tuple[Subscription, ...], handlers: Handlers) -> tuple[Subscription, ...]:
    """Return these subscriptions, and those to the other queues that handlers name."""
    return (*given, *(Subscription(queue) for queue in find_unserved(handlers.queues, given)))


def _read_settings(options: WorkerOptions) -> Settings:
    """Return the settings of a worker: each is the option of the same name."""
    given = vars(options)
    named = {each.name: given[each.name] for each in fields(Settings) if each.name in given}
    queues = options.queue and tuple(
        Subscription.read(text.removeprefix("+")) for text in options.queue
    )
    reconnect = ReconnectDelays(first=options.reconnect, longest=options.reconnect_max)
    return Settings(**named | {"queues": queues, "reconnect": reconnect})


def _process_command(
    arguments: int,
    name: str | None,
    number: int,
    status_fd: int,
    *,
    paused: bool,
    id: str,
    after: str,
) -> list[str]:
    """Return the command line of a process: the supervisor's own, and what only that knows.

    `arguments` is how many of the last words of the supervisor's command line are the worker's;
    `name` is what the names of all processes begin with, unless these words say it.
    """
    after_worker = len(sys.orig_argv) - arguments
    hidden = ["--process-number", str(number), "--status-fd", str(status_fd), "--process-id", id]
    hidden += ["--name", name] if name else []
    hidden += ["--after", after] if after else []
    hidden += ["--paused"] if paused else []
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
    here = _find_current_directory()
    if here is not None and here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if not f"{name}.".startswith(f"{missing.name}."):
            raise
        if "://" in name:
            raise AioqlessError("a URL is no module: say where Redis is by --url") from None
        meant = name.partition(":")[0]
        if meant.endswith(".py"):
            meant = ".".join(Path(meant).with_suffix("").parts)
        module, _, attribute = name.rpartition(".")
        if hasattr(sys.modules.get(module), attribute):
            meant = module
        hint = "" if meant == name else f"; did you mean {meant!r}?"
        raise AioqlessError(
            f"there is no module {name!r} in {here or 'the deleted current directory'} nor among "
            f"those installed{hint}"
        ) from None


def _find_current_directory() -> str | None:
    """Return the current directory; None if it was deleted, as that of an old release."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return None
