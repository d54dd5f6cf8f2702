"""Options of `aioqless worker`, declared once: argparse parses them, Typer only completes them.

They need no package of the extra `cli`, so that a worker doesn't need it either.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from types import NoneType
from typing import Annotated, Any, NamedTuple, NoReturn, get_args, get_origin, get_type_hints

from aioqless.cli.exit_codes import USAGE
from aioqless.validation import plain
from aioqless.worker import ReconnectDelays, Settings
from aioqless.worker.subscriptions import ORDERS

PROGRAM = "aioqless worker"
SYNOPSIS = f"{PROGRAM} [OPTIONS] MODULE..."
DESCRIPTION = """\
Run jobs.

SIGTERM or SIGINT: graceful shutdown: finish running jobs, release the rest.
A second signal ends it at once.
"""
MODULES_HELP = "Modules with handlers, such as app.jobs."
METAVARS: dict[object, str] = {int: "N", float: "SECONDS"}


class Option:
    """How a field of `WorkerOptions` is written on the command line.

    Args:
        flags: its spellings.
        off: the spelling that sets it to False.
        parse: converts its value; default: the type of the field.
        metavar: what its value is called in the help.
        variable: the environment variable that gives the default.
        help: empty if the option is hidden.
    """

    def __init__(
        self,
        *flags: str,
        help: str = "",
        off: str | None = None,
        parse: Callable[[str], object] | None = None,
        metavar: str | None = None,
        variable: str | None = None,
    ) -> None:
        self.flags = flags
        self.help = help
        self.off = off
        self.parse = parse
        self.metavar = metavar
        self.variable = variable


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
    queue: Annotated[
        list[str] | None,
        Option(
            "-q",
            "--queue",
            help="A queue to serve: mail, reports=4 (at most 4 at once), urgent,5 (weight), "
            "'mail-*'; repeatable; default: the queues that the handlers name.",
            metavar="QUEUE",
        ),
    ] = None
    concurrency: Annotated[
        int, Option("-c", "--concurrency", help="Maximum number of jobs at once.")
    ] = Settings.concurrency
    order: Annotated[
        str,
        Option(
            "--order", help=f"Which queue is polled first: {', '.join(ORDERS)}.", metavar="ORDER"
        ),
    ] = Settings.order
    poll: Annotated[float, Option("--poll", help="Seconds between polls of empty queues.")] = (
        Settings.poll
    )
    reconnect: Annotated[
        float, Option("--reconnect", help="Seconds before Redis is tried again; the delay grows.")
    ] = ReconnectDelays.first
    reconnect_max: Annotated[
        float, Option("--reconnect-max", help="Maximum of that delay, in seconds.")
    ] = ReconnectDelays.longest
    shutdown_timeout: Annotated[
        float, Option("--shutdown-timeout", help="Graceful-shutdown timeout, in seconds.")
    ] = Settings.shutdown_timeout
    stuck_after: Annotated[
        float,
        Option(
            "--stuck-after", help="Seconds of a blocked event loop until locks are not renewed."
        ),
    ] = Settings.stuck_after
    unknown_klass_delay: Annotated[
        float,
        Option(
            "--unknown-klass-delay",
            help="Seconds for which a job of an unknown klass is left to other workers.",
        ),
    ] = Settings.unknown_klass_delay
    unknown_klass_timeout: Annotated[
        float,
        Option(
            "--unknown-klass-timeout",
            help="Seconds of that until the job fails; 0: it fails at once.",
        ),
    ] = Settings.unknown_klass_timeout
    threads: Annotated[
        int, Option("--threads", help="Maximum number of plain functions at once.")
    ] = Settings.threads
    processes: Annotated[
        int,
        Option(
            "--processes",
            help="Maximum number of handlers with executor='process' at once; by default the "
            "number of processors.",
        ),
    ] = Settings.processes
    max_jobs_per_process: Annotated[
        int | None,
        Option(
            "--max-jobs-per-process", help="Jobs until such a process is replaced; default: never."
        ),
    ] = None
    kill_after: Annotated[
        float, Option("--kill-after", help="Seconds until a process that doesn't end is killed.")
    ] = Settings.kill_after
    scheduler: Annotated[
        bool,
        Option(
            "--scheduler",
            off="--no-scheduler",
            help="Declare recurring jobs and run cron schedules; default: yes.",
        ),
    ] = Settings.scheduler
    allow_eviction: Annotated[
        bool,
        Option("--allow-eviction", help="Use a Redis that may evict jobs when it is full."),
    ] = False
    burst: Annotated[
        bool, Option("--burst", help="Stop when nothing is ready and nothing runs.")
    ] = False
    max_jobs: Annotated[
        int | None,
        Option("--max-jobs", help="Stop after this many jobs; with -w, a new process takes over."),
    ] = None
    max_memory: Annotated[
        int | None,
        Option(
            "--max-memory",
            help="Stop when the process uses more memory, such as 512M; with -w likewise.",
            parse=parse_size,
            metavar="SIZE",
        ),
    ] = None
    workers: Annotated[
        int | None,
        Option(
            "-w",
            "--workers",
            help="Number of worker processes, plus a supervisor.",
            parse=parse_process_count,
        ),
    ] = None
    reload: Annotated[
        bool, Option("--reload", help="Restart when source files change (development).")
    ] = False
    health: Annotated[
        str | None,
        Option(
            "--health",
            help="PORT or HOST:PORT to answer GET /live and /ready at; default host: 127.0.0.1.",
            metavar="ADDRESS",
        ),
    ] = None
    metrics: Annotated[
        str | None,
        Option(
            "--metrics",
            help="PORT or HOST:PORT to serve metrics for Prometheus at; default host: 127.0.0.1.",
            metavar="ADDRESS",
        ),
    ] = None
    name: Annotated[
        str | None,
        Option("--name", help="The worker's name; default: host-pid-nonce.", metavar="NAME"),
    ] = None
    log_level: Annotated[
        str, Option("--log-level", help="debug, info, warning or error.", metavar="LEVEL")
    ] = "info"
    log_json: Annotated[
        bool | None,
        Option("--log-json", off="--log-console", help="Default: JSON unless on a terminal."),
    ] = None
    url: Annotated[
        str | None,
        Option(
            "--url",
            help="Redis to use; default: AIOQLESS_URL, REDIS_URL, else a private server.",
            metavar="URL",
        ),
    ] = None
    namespace: Annotated[
        str,
        Option(
            "--namespace",
            help="Prefix of all keys; other qless clients use ql.",
            metavar="PREFIX",
            variable="AIOQLESS_NAMESPACE",
        ),
    ] = "ql"
    partitions: Annotated[
        int | None,
        Option(
            "--partitions",
            help="Number of partitions of the namespace; default: it isn't partitioned.",
            parse=parse_process_count,
            variable="AIOQLESS_PARTITIONS",
        ),
    ] = None
    # What a supervisor passes to its processes.
    process_number: Annotated[int | None, Option("--process-number")] = None
    status_fd: Annotated[int | None, Option("--status-fd")] = None
    paused: Annotated[bool, Option("--paused")] = False


class Declaration(NamedTuple):
    """An option, with the name, default and type of its field; the type without None."""

    name: str
    default: object
    type: type
    option: Option


def declarations() -> Iterator[Declaration]:
    """Yield all options, in the order of the help."""
    hints = get_type_hints(WorkerOptions, include_extras=True)
    for each in fields(WorkerOptions):
        if get_origin(hints[each.name]) is Annotated:
            hint, option = get_args(hints[each.name])
            types = [hint] if get_origin(hint) is list else (get_args(hint) or [hint])
            (only,) = (found for found in types if found is not NoneType)
            yield Declaration(each.name, each.default, only, option)


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
    for declaration in declarations():
        _add_option(options, declaration)
    options.add_argument("--help", action="help", help="Show this message and exit.")
    parser.set_defaults(**{name: each for name, each in defaults.items() if each is not None})
    found, unknown = parser.parse_known_intermixed_args(arguments)
    if unknown:
        parser.error(f"no such option: {unknown[0]}{_suggest(unknown[0])}")
    return WorkerOptions(**vars(found))


def _add_option(options: argparse._ArgumentGroup, declaration: Declaration) -> None:
    name, default, kind, option = declaration
    help_text = option.help or argparse.SUPPRESS
    if kind is bool and option.off:
        options.add_argument(
            *option.flags, option.off, dest=name, action=_Pair, default=default, help=help_text
        )
    elif kind is bool:
        options.add_argument(*option.flags, dest=name, action="store_true", help=help_text)
    else:
        repeatable = get_origin(kind) is list
        default = os.environ.get(option.variable or "") or default
        if option.help and default is not None:
            variable = f"environment: {option.variable}; " if option.variable else ""
            help_text += f" ({variable}default: {default})".replace("%", "%%")
        options.add_argument(
            *option.flags,
            dest=name,
            action="append" if repeatable else "store",
            type=str if repeatable else option.parse or kind,
            default=default,
            metavar=option.metavar or METAVARS.get(kind),
            help=help_text,
        )


def _suggest(word: str) -> str:
    from difflib import get_close_matches

    known = [flag for each in declarations() if each.option.help for flag in each.option.flags]
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
