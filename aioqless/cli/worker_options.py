"""Options of `aioqless worker`, declared once: argparse parses them, Typer only completes them.

They need no package of the extra `cli`, so that a worker doesn't need it either.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from types import NoneType
from typing import Any, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from aioqless.cli.exit_codes import USAGE
from aioqless.validation import plain
from aioqless.worker import ReconnectDelays, Settings
from aioqless.worker.subscriptions import ORDERS

T = TypeVar("T")
PROGRAM = "aioqless worker"
SYNOPSIS = f"{PROGRAM} [OPTIONS] MODULE..."
DESCRIPTION = """\
Run jobs.

SIGTERM or SIGINT: graceful shutdown: finish running jobs, release the rest.
A second signal ends it at once.
"""
MODULES_HELP = "Modules with handlers, such as app.jobs."
METAVARS: dict[object, str] = {int: "N", float: "SECONDS"}


@dataclass(frozen=True, kw_only=True)
class Option:
    """A field of `WorkerOptions` as an option of the command line.

    Attributes:
        name: Name of the field.
        default: Its default.
        type: Its type, without None.
        help: Empty if the option is hidden.
        short: Its short spelling.
        off: The spelling that sets it to False.
        parse: Converts its value; default: its type.
        metavar: What its value is called in the help.
        variable: The environment variable that gives the default.
    """

    name: str = ""
    default: object = None
    type: type = str
    help: str = ""
    short: str = ""
    off: str = ""
    parse: Callable[[str], object] | None = None
    metavar: str | None = None
    variable: str = ""

    @property
    def flags(self) -> list[str]:
        """Its spellings that set it, the short one first."""
        return [*filter(None, [self.short]), f"--{self.name.replace('_', '-')}"]


def _option(default: T, help: str = "", short: str = "", **more: Any) -> T:
    """Declare a field of `WorkerOptions` that is an option; arguments as those of `Option`."""
    option = Option(help=help, short=short, **more)
    declared: T = field(default=default, metadata={"option": option})
    return declared


def parse_process_count(text: str) -> int:
    """Return an integer >= 1."""
    if not re.fullmatch(r"[0-9]+", text) or (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be an integer >= 1")
    return number


def parse_size(text: str) -> int:
    """Return the number of bytes of `512M`, `2G` or a plain number."""
    if not (match := re.fullmatch(r"([1-9]\d*)([KMG]?)", text)):
        raise argparse.ArgumentTypeError(
            f"{text!r} must be a number of bytes, or of them with K, M or G"
        )
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """What a command line asks of a worker; the help of each option says what it means."""

    modules: list[str]
    queue: list[str] | None = _option(  # noqa: RUF009  # the others have simple types
        None,
        "A queue to serve: mail, reports=4 (at most 4 at once), urgent,5 (weight), 'mail-*'; "
        "repeatable; default: the queues that the handlers name, to which +mail adds one.",
        "-q",
        metavar="QUEUE",
    )
    concurrency: int = _option(Settings.concurrency, "Maximum number of jobs at once.", "-c")
    order: str = _option(
        Settings.order, f"Which queue is polled first: {', '.join(ORDERS)}.", metavar="ORDER"
    )
    poll: float = _option(Settings.poll, "Seconds between polls of empty queues.")
    reconnect: float = _option(
        ReconnectDelays.first, "Seconds before Redis is tried again; the delay grows."
    )
    reconnect_max: float = _option(ReconnectDelays.longest, "Maximum of that delay, in seconds.")
    shutdown_timeout: float = _option(
        Settings.shutdown_timeout, "Graceful-shutdown timeout, in seconds."
    )
    stuck_after: float = _option(
        Settings.stuck_after, "Seconds of a blocked event loop until locks are not renewed."
    )
    timeout: float | None = _option(
        None, "Maximum seconds of a run, of handlers without a timeout; default: none."
    )
    park_after: float = _option(
        Settings.park_after, "Seconds after which a job that waits leaves its slot."
    )
    unknown_klass_delay: float = _option(
        Settings.unknown_klass_delay,
        "Seconds for which a job of an unknown klass is left to other workers.",
    )
    unknown_klass_timeout: float = _option(
        Settings.unknown_klass_timeout,
        "Seconds of that until the job fails; 0: it fails at once.",
    )
    threads: int = _option(Settings.threads, "Maximum number of plain functions at once.")
    processes: int = _option(
        Settings.processes,
        "Maximum number of handlers with executor='process' at once; by default the number of "
        "processors.",
    )
    max_jobs_per_process: int | None = _option(
        None, "Jobs until such a process is replaced; default: never."
    )
    kill_after: float = _option(
        Settings.kill_after, "Seconds until a process that doesn't end is killed."
    )
    scheduler: bool = _option(
        Settings.scheduler,
        "Declare recurring jobs and run cron schedules; default: yes.",
        off="--no-scheduler",
    )
    allow_eviction: bool = _option(False, "Use a Redis that may evict jobs when it is full.")
    burst: bool = _option(False, "Stop when nothing is ready and nothing runs.")
    max_jobs: int | None = _option(
        None, "Stop after this many jobs; with -w, a new process takes over."
    )
    max_memory: int | None = _option(
        None,
        "Stop when the process uses more memory, such as 512M; with -w likewise.",
        parse=parse_size,
        metavar="SIZE",
    )
    workers: int | None = _option(
        None, "Number of worker processes, plus a supervisor.", "-w", parse=parse_process_count
    )
    reload: bool = _option(False, "Restart when source files change (development).")
    health: str | None = _option(
        None,
        "PORT or HOST:PORT to answer GET /live and /ready at; default host: 127.0.0.1.",
        metavar="ADDRESS",
    )
    metrics: str | None = _option(
        None,
        "PORT or HOST:PORT to serve metrics for Prometheus at; default host: 127.0.0.1.",
        metavar="ADDRESS",
    )
    name: str | None = _option(None, "The worker's name; default: host-pid-nonce.", metavar="NAME")
    version_label: str | None = _option(
        None,
        "Version of the application, which marks its deploy; default: what GIT_SHA and variables "
        "of common platforms say.",
        metavar="VERSION",
    )
    log_level: str = _option("info", "debug, info, warning or error.", metavar="LEVEL")
    log_json: bool | None = _option(
        None, "Default: JSON unless on a terminal.", off="--log-console"
    )
    url: str | None = _option(
        None,
        "Redis to use; default: AIOQLESS_URL, REDIS_URL, else a private server.",
        metavar="URL",
    )
    namespace: str = _option(
        "ql",
        "Prefix of all keys; other qless clients use ql.",
        metavar="PREFIX",
        variable="AIOQLESS_NAMESPACE",
    )
    partitions: int | None = _option(
        None,
        "Number of partitions of the namespace; default: it isn't partitioned.",
        parse=parse_process_count,
        variable="AIOQLESS_PARTITIONS",
    )
    # What a supervisor passes to its processes.
    process_number: int | None = _option(None)
    status_fd: int | None = _option(None)
    process_id: str | None = _option(None)
    after: str | None = _option(None)
    paused: bool = _option(False)


def list_options() -> Iterator[Option]:
    """Yield all options, in the order of the help."""
    hints = get_type_hints(WorkerOptions)
    for each in fields(WorkerOptions):
        if option := each.metadata.get("option"):
            hint = hints[each.name]
            types = [hint] if get_origin(hint) is list else (get_args(hint) or [hint])
            (only,) = (found for found in types if found is not NoneType)
            yield replace(option, name=each.name, default=each.default, type=only)


def parse_options(
    arguments: Sequence[str], *, program: str | None = None, **defaults: str | None
) -> WorkerOptions:
    """Parse the words behind `aioqless worker`.

    Args:
        arguments: the words.
        program: how users of another program call this command; it needs no modules.
        defaults: defaults of that program.

    Raises:
        SystemExit: They ask for help, or are wrong; a message was printed.
    """
    parser = _Parser(
        prog=program or PROGRAM,
        usage=f"{program} [OPTIONS] [MODULE]..." if program else SYNOPSIS,
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument_group("Arguments").add_argument(
        "modules", nargs="*" if program else "+", metavar="MODULE", help=MODULES_HELP
    )
    options = parser.add_argument_group("Options")
    for option in list_options():
        _add_option(options, option)
    options.add_argument("--help", action="help", help="Show this message and exit.")
    parser.set_defaults(**{name: each for name, each in defaults.items() if each is not None})
    found, unknown = parser.parse_known_intermixed_args(arguments)
    if unknown:
        parser.error(f"no such option: {unknown[0]}{_suggest(unknown[0])}")
    return WorkerOptions(**vars(found))


def _add_option(options: argparse._ArgumentGroup, option: Option) -> None:
    default, help_text = option.default, option.help or argparse.SUPPRESS
    if option.off:
        options.add_argument(
            *option.flags, option.off, action=_Pair, default=default, help=help_text
        )
    elif option.type is bool:
        options.add_argument(*option.flags, action="store_true", help=help_text)
    else:
        repeatable = get_origin(option.type) is list
        default = os.environ.get(option.variable) or default
        if option.help and default is not None:
            variable = f"environment: {option.variable}; " if option.variable else ""
            help_text += f" ({variable}default: {default})".replace("%", "%%")
        options.add_argument(
            *option.flags,
            action="append" if repeatable else "store",
            type=str if repeatable else option.parse or option.type,
            default=default,
            metavar=option.metavar or METAVARS.get(option.type),
            help=help_text,
        )


def _suggest(word: str) -> str:
    from difflib import get_close_matches

    known = [flag for each in list_options() if each.help for flag in each.flags]
    word = word.partition("=")[0]
    longer = [flag for flag in known if flag.startswith(word)]
    similar = longer or get_close_matches(word, known, 1)
    return f"; did you mean {similar[0]}?" if similar else ""


class _Pair(argparse.Action):
    """Sets True by its first spellings, and False by the last."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, *call: Any) -> None:
        _, namespace, _, spelling = call
        setattr(namespace, self.dest, spelling != self.option_strings[-1])


class _Parser(argparse.ArgumentParser):
    """Reports errors as the other commands do."""

    def error(self, message: str) -> NoReturn:
        self.exit(
            USAGE,
            f"{self.format_usage()}Try '{self.prog} --help' for help.\n\n"
            f"Error: {plain(message, lines=True)}\n",
        )
