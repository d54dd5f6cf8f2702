"""Loads the command that argv names, runs it, and turns errors into messages and exit codes."""

from __future__ import annotations

import contextlib
import errno
import os
import pkgutil
import sys
import textwrap
from importlib import import_module

from redis import exceptions

from aioqless import __version__
from aioqless.cli.exit_codes import INTERRUPTED, REFUSED, UNREACHABLE, USAGE
from aioqless.cli.extension_loader import EXTENSION_COMMANDS
from aioqless.cli.open_file_limit import describe_exhaustion
from aioqless.errors import AioqlessError, MissingExtra, ServerUnavailable, require_extra
from aioqless.runtime.output import discard_output, open_closed_descriptors
from aioqless.validation import plain

__all__ = ["load_command", "main"]

# Their modules register commands. Those of extensions are not in the folders of the extensions,
# because the help lists them also where an extra isn't installed.
COMMAND_PACKAGES = ("aioqless.cli.commands", EXTENSION_COMMANDS)

# The commands that need packages of extras, by what to install. `worker` needs none.
COMMANDS = {
    "cli": "acl cancel check clear config edit failed get intake jobs lua move partitions pause "
    "put queues quiet recur redis resume retry stats subscribe tag tail track unfail unpause "
    "unsubscribe workers",
    "top": "top",
    "web": "web web-user",
    "cli,sqlalchemy": "outbox",
    "spark": "pipeline",
}

# Errors of a write to standard output.
_WRITE_ERRORS = (
    errno.EPIPE,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.EFBIG,
    errno.EBADF,
)


def main() -> None:
    """Run the command that argv names, and exit."""
    open_closed_descriptors()
    try:
        try:
            if sys.argv[1:2] == ["worker"]:
                sys.exit(_run_worker())
            _run_app()
        finally:
            sys.stdout.flush()
    except (exceptions.RedisError, ServerUnavailable) as error:
        _exit(str(error), UNREACHABLE)
    except (AioqlessError, ValueError, TypeError) as error:
        _exit(str(error), REFUSED)
    except OSError as error:
        _exit_on_os_error(error)


def _run_worker() -> int:
    from aioqless.cli.worker_command import run_worker  # other commands don't need it

    try:
        return run_worker(sys.argv[2:])
    except KeyboardInterrupt:  # before the worker handles signals
        return INTERRUPTED


def _run_app() -> None:
    """Run a command other than `worker`, or complete one.

    Raises:
        MissingExtra: Typer isn't installed.
    """
    completing = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS")
    words = completing.split() if completing else sys.argv
    command = words[1] if len(words) > (2 if completing else 1) else None
    extra = next((each for each, names in COMMANDS.items() if command in names.split()), "cli")
    try:
        with require_extra(extra):
            load_command(command)
            from aioqless.cli.app import app
    except MissingExtra:
        if command not in (None, "--help", "--version"):
            raise
        print(f"aioqless {__version__}" if command == "--version" else _core_help())
        sys.exit(USAGE if command is None else 0)
    app(prog_name="aioqless")


def _core_help() -> str:
    """Return the help where only the core is installed."""
    lines = ["Usage: aioqless COMMAND [OPTIONS]", "", "Commands:"]
    lines.append("  worker  Run jobs; `aioqless worker --help` lists its options.")
    for extra, names in COMMANDS.items():
        lines += ["", f'These need pip install "aioqless[{extra}]":']
        lines += textwrap.wrap(names, 78, initial_indent="  ", subsequent_indent="  ")
    return "\n".join(lines)


def load_command(command: str | None = None) -> None:
    """Import the module that is named like a command; all modules of commands if none is."""
    modules = {
        found.name.rpartition(".")[2]: found.name
        for package in COMMAND_PACKAGES
        for found in pkgutil.iter_modules(import_module(package).__path__, f"{package}.")
    }
    for module in [modules[command]] if command in modules else modules.values():
        import_module(module)


def _exit_on_os_error(error: OSError) -> None:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        _exit(describe_exhaustion(), REFUSED)
    if error.errno not in _WRITE_ERRORS or error.filename is not None:
        raise error
    discard_output()
    if error.errno == errno.EPIPE:  # the reader, such as `head`, has read enough
        sys.exit(REFUSED)
    _exit(f"the output can't be written: {error.strerror}", REFUSED)


def _exit(message: str, code: int) -> None:
    with contextlib.suppress(OSError):
        print(f"aioqless: {plain(message, lines=True)}", file=sys.stderr)
    sys.exit(code)
