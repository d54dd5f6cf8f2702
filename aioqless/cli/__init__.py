"""The command line: the only place that knows of argv, signals and exit codes. One file for each group of commands.

app.py        what all commands share
printing.py   tables for people, JSON for programs
words.py      times, durations, texts that can't spoil a terminal
portrait.py   a job as a person wants to see it
shapes.py     a job in JSON
bars.py       histograms
given.py      data as given
asking.py     dry runs, confirmation, progress
watching.py   events as lines; jobs until they are through
completing.py what the shell completes
meant.py      names that there aren't, and which ones were meant
worker.py     worker
descriptors.py how many descriptors a worker needs
shutdown.py   the end of a worker's process, when it was promised
jobs.py       put, get, jobs
again.py      retry, edit, unfail
acting.py     cancel, move, tag, track
intake.py     intake
outbox.py     outbox
pipeline.py   what the commands of pipeline share; each pipeline_….py has some of them
queues.py     queues, failed, pause, unpause, clear
stats.py      stats
config.py     config
tail.py       tail
top.py        top
screen/       what top shows, and the keys it obeys
recurring.py  recur
workers.py    workers, subscribe, unsubscribe, quiet, resume
redis.py      redis
keep.py       check, lua
web.py        web, web-user; how they are served: serving.py
acl.py        acl
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from importlib import import_module

from redis import exceptions

from aioqless.cli.app import REFUSED, UNREACHABLE, app
from aioqless.cli.descriptors import exhausted
from aioqless.cli.words import plain
from aioqless.embedded import NoServer
from aioqless.errors import AioqlessError
from aioqless.output import discard_output, open_closed_descriptors

__all__ = ["load", "main"]

# Where each command is, with all that it has in it: only the one that is called is imported.
_HOMES = {
    "acl": "acl",
    "acting": "cancel move tag track",
    "again": "edit retry unfail",
    "config": "config",
    "intake": "intake",
    "jobs": "get jobs put",
    "keep": "check lua",
    "outbox": "outbox",
    "pipeline_archive": "pipeline",
    "pipeline_put": "pipeline",
    "pipeline_tables": "pipeline",
    "queues": "clear failed pause queues unpause",
    "recurring": "recur recurring",
    "redis": "redis",
    "stats": "stats",
    "tail": "tail",
    "top": "top",
    "web": "web web-user",
    "worker": "worker",
    "workers": "quiet resume subscribe unsubscribe workers",
}

UNWRITABLE = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EBADF)


def load(command: str | None = None) -> None:
    """Make a command known to the app; without one, or for one that there isn't, all of them."""
    for home in [home for home, commands in _HOMES.items() if command in commands.split()] or _HOMES:
        import_module(f"aioqless.cli.{home}")


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
    except (AioqlessError, ValueError, TypeError) as error:
        sys.exit(_told(str(error), REFUSED))
    except (exceptions.RedisError, NoServer) as error:
        sys.exit(_told(str(error), UNREACHABLE))
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            sys.exit(_told(exhausted(), REFUSED))
        if error.errno not in UNWRITABLE or error.filename is not None:
            raise
        discard_output()
        sys.exit(REFUSED if error.errno == errno.EPIPE else _told(f"the output can't be written: {error.strerror}", REFUSED))


def _told(message: str, code: int) -> int:
    with contextlib.suppress(OSError):
        print(f"aioqless: {plain(message, lines=True)}", file=sys.stderr)
    return code
