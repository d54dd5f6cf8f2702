"""Load the command that argv names, run it, and turn what it raises into a message and an exit
code."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from importlib import import_module
from itertools import chain

from redis import exceptions

from aioqless.cli.app import REFUSED, UNREACHABLE, app
from aioqless.cli.command_index import modules
from aioqless.cli.descriptors import exhausted
from aioqless.cli.presentation.formatting import plain
from aioqless.errors import AioqlessError, ServerUnavailable
from aioqless.log.output import discard_output, open_closed_descriptors

__all__ = ["load", "main"]

UNWRITABLE = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EBADF)


def load(command: str | None = None) -> None:
    """Register a command with the app, and import no other; every command if there is no such."""
    known = modules()
    for module in known.get(command or "") or chain.from_iterable(known.values()):
        import_module(module)


def main() -> None:
    """Run the command that argv names, and exit."""
    open_closed_descriptors()
    completing = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS")
    words = completing.split() if completing else sys.argv
    load(words[1] if len(words) > (2 if completing else 1) else None)
    try:
        try:
            app(prog_name="aioqless")
        finally:
            sys.stdout.flush()
    except (exceptions.RedisError, ServerUnavailable) as error:
        sys.exit(_told(str(error), UNREACHABLE))
    except (AioqlessError, ValueError, TypeError) as error:
        sys.exit(_told(str(error), REFUSED))
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            sys.exit(_told(exhausted(), REFUSED))
        if error.errno not in UNWRITABLE or error.filename is not None:
            raise
        discard_output()
        sys.exit(
            REFUSED
            if error.errno == errno.EPIPE
            else _told(f"the output can't be written: {error.strerror}", REFUSED)
        )


def _told(message: str, code: int) -> int:
    with contextlib.suppress(OSError):
        print(f"aioqless: {plain(message, lines=True)}", file=sys.stderr)
    return code
