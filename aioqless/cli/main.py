"""Loads the command that argv names, runs it, and turns errors into messages and exit codes."""

from __future__ import annotations

import contextlib
import errno
import os
import pkgutil
import sys
from importlib import import_module

from redis import exceptions

from aioqless.cli.app import app
from aioqless.cli.exit_codes import REFUSED, UNREACHABLE
from aioqless.cli.extension_loader import EXTENSION_COMMANDS
from aioqless.cli.open_file_limit import describe_exhaustion
from aioqless.errors import AioqlessError, ServerUnavailable
from aioqless.runtime.output import discard_output, open_closed_descriptors
from aioqless.validation import plain

__all__ = ["load_command", "main"]

# Their modules register commands. Those of extensions are not in the folders of the extensions,
# because the help lists them also where an extra isn't installed.
COMMAND_PACKAGES = ("aioqless.cli.commands", EXTENSION_COMMANDS)

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
    """Import the module that is named like a command; all modules of commands if none is."""
    modules = {
        found.name.rpartition(".")[2]: found.name
        for package in COMMAND_PACKAGES
        for found in pkgutil.iter_modules(import_module(package).__path__, f"{package}.")
    }
    for module in [modules[command]] if command in modules else modules.values():
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
