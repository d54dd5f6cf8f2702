"""Loads the command that argv names, runs it, and turns errors into messages and exit codes."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import pkgutil
import sys
import textwrap
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from aioqless.cli.exit_codes import INTERRUPTED, REFUSED, UNREACHABLE, USAGE
from aioqless.cli.help import list_commands, read_extension_commands, render_help
from aioqless.cli.open_file_limit import describe_exhaustion
from aioqless.errors import AioqlessError, InvalidArgument, ServerUnavailable, require_extra
from aioqless.validation import plain

__all__ = ["load_command", "main"]

# Errors of a write to standard output.
_WRITE_ERRORS = (
    errno.EPIPE,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.EFBIG,
    errno.EBADF,
)
# Options that most commands have, with how many words each is.
_COMMON_OPTIONS = {"--url": 2, "--namespace": 2, "--partitions": 2, "--json": 1}


def main(on_imported: Callable[[], None] = lambda: None) -> None:
    """Run the command that argv names, and exit.

    Args:
        on_imported: Called before a command runs, when its modules are imported.
    """
    _open_closed_descriptors()
    if isinstance(sys.stdout, io.TextIOWrapper):  # in a locale without UTF-8, as on standard error
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.argv[1:] = _move_common_options(sys.argv[1:])
    try:
        try:
            if sys.argv[1:2] == ["worker"]:
                sys.exit(_run_worker(on_imported))
            _run_app(on_imported)
        finally:
            sys.stdout.flush()
    except Exception as error:
        _exit_on_error(error)


def _move_common_options(words: list[str]) -> list[str]:
    """Return the words with the options that stand before the command moved behind its own."""
    start = 0
    while start < len(words) and (length := _COMMON_OPTIONS.get(words[start].partition("=")[0])):
        start += 1 if "=" in words[start] else length
    before, command = words[:start], words[start:]
    if not command:
        return words
    end = command.index("--") if "--" in command else len(command)
    return [*command[:end], *before, *command[end:]]


def _run_worker(on_imported: Callable[[], None]) -> int:
    from aioqless.cli.worker_command import run_worker  # other commands don't need it

    on_imported()
    try:
        return run_worker(sys.argv[2:])
    except KeyboardInterrupt:  # before the worker handles signals
        return INTERRUPTED


def _run_app(on_imported: Callable[[], None]) -> None:
    """Run a command other than `worker`, or complete one.

    Raises:
        MissingExtra: Typer isn't installed.
    """
    completing = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS")
    words = completing.split() if completing else sys.argv
    command = words[1] if len(words) > (2 if completing else 1) else None
    if "_AIOQLESS_COMPLETE" not in os.environ and command in (None, "--help", "-h"):
        print(render_help())
        try:
            installed = find_spec("typer")
        except ImportError:  # an import hook refuses it
            installed = None
        if installed is None:
            print(_describe_extras())
        sys.exit(USAGE if command is None else 0)
    if command and not completing and "." in command:
        _exit(f"{command!r} is no command; to run its jobs: aioqless worker {command}", USAGE)
    from aioqless.hints import COMMANDS  # `--version` doesn't need it

    if command in COMMANDS and not completing:
        _exit(f"{command!r} is no command: write {COMMANDS[command]}", USAGE)
    extension = read_extension_commands().get(command or "")
    with require_extra(extension["extra"] if extension else "cli"):
        load_command(command)
        from aioqless.cli.app import app
    on_imported()
    app(prog_name="aioqless")


def _describe_extras() -> str:
    """Return what to install for each command, where only the core is installed."""
    lines = ["", "`worker` runs without extras."]
    extensions = read_extension_commands()
    by_extra: dict[str, list[str]] = {"cli": []}
    for name in sorted(name for commands in list_commands().values() for name in commands):
        if name != "worker":
            extra = extensions[name]["extra"] if name in extensions else "cli"
            by_extra.setdefault(extra, []).append(name)
    for extra, names in by_extra.items():
        lines += ["", f'These need pip install "aioqless[{extra}]":']
        lines += textwrap.wrap(" ".join(names), 78, initial_indent="  ", subsequent_indent="  ")
    return "\n".join(lines)


def load_command(command: str | None = None) -> None:
    """Import the module that is named like a command; all modules of commands if none is."""
    package = import_module("aioqless.cli.commands")
    modules = {
        found.name.rpartition(".")[2]: found.name
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    }
    for module in [modules[command]] if command in modules else modules.values():
        import_module(module)


def _exit_on_error(error: Exception) -> None:
    """Exit with a message and a code, unless the error is a mistake in the program."""
    from redis import exceptions  # takes long, and most commands need no more of it

    match error:
        case exceptions.RedisError() | ServerUnavailable():
            _exit(str(error), UNREACHABLE)
        case InvalidArgument():
            _exit(str(error), USAGE)
        case AioqlessError():
            _exit(str(error), REFUSED)
        case ValueError() | TypeError():  # the client refuses an argument, a worker its modules too
            _exit(str(error), REFUSED if sys.argv[1:2] == ["worker"] else USAGE)
        case OSError():
            _exit_on_os_error(error)
    raise error


def _exit_on_os_error(error: OSError) -> None:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        _exit(describe_exhaustion(), REFUSED)
    if error.errno not in _WRITE_ERRORS or error.filename is not None:
        raise error
    _discard_output()
    if error.errno == errno.EPIPE:  # the reader, such as `head`, has read enough
        sys.exit(REFUSED)
    _exit(f"the output can't be written: {error.strerror}", REFUSED)


def _exit(message: str, code: int) -> None:
    with contextlib.suppress(OSError):
        print(f"aioqless: {plain(message, lines=True)}", file=sys.stderr)
    sys.exit(code)


def _discard_output() -> None:
    """Discard what is left of standard output.

    The interpreter would try again at exit, and change the exit code.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def _open_closed_descriptors() -> None:
    """Open missing standard descriptors on the null device.

    Otherwise the next socket would get such a number, and printed text would be written to it.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            os.set_inheritable(descriptor, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, "r" if name == "stdin" else "w", closefd=False))  # noqa: SIM115
