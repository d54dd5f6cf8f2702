"""Loads the command that argv names, runs it, and turns errors into messages and exit codes."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from importlib import import_module
from itertools import chain

from redis import exceptions

from aioqless.cli.app import app
from aioqless.cli.command_index import command_modules
from aioqless.cli.descriptors import describe_exhaustion
from aioqless.cli.exit_codes import REFUSED, UNREACHABLE
from aioqless.errors import AioqlessError, ServerUnavailable
from aioqless.log.output import discard_output, open_closed_descriptors
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


def load_command(command: str | None = None) -> None:
    """Import the modules of a command; those of all commands if there is no such command."""
    modules = command_modules()
    for module in modules.get(command or "") or chain.from_iterable(modules.values()):
        import_module(module)


def main() -> None:
    """Run the command that argv names, and exit."""
    open_closed_descriptors()
    completing = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS")
    words = completing.split() if completing else sys.argv
    load_command(words[1] if len(words) > (2 if completing else 1) else None)
    try:
        try:
            app(prog_name="aioqless")
        finally:
            sys.stdout.flush()
    except (exceptions.RedisError, ServerUnavailable) as error:
        _exit(str(error), UNREACHABLE)
    except (AioqlessError, ValueError, TypeError) as error:
        _exit(str(error), REFUSED)
    except OSError as error:
        _exit_on_os_error(error)


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
