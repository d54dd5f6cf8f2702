"""The command line: the only place that knows of argv, signals and exit codes. One file for each group of commands.

app.py        what all commands share
worker.py     worker
jobs.py       put, get
intake.py     intake
outbox.py     outbox
queues.py     queues, failed, unfail
recurring.py  recurring
pipeline.py   what the commands of pipeline share; each pipeline_….py has some of them
workers.py    workers, subscribe, unsubscribe, quiet, resume
keep.py       check, lua
web.py        web, web-user; how they are served: serving.py
"""

from __future__ import annotations

import sys

from redis import exceptions

from aioqless.cli.app import REFUSED, UNREACHABLE, app
from aioqless.cli.intake import intake
from aioqless.cli.jobs import get, put
from aioqless.cli.keep import check, lua
from aioqless.cli.outbox import outbox
from aioqless.cli.pipeline import pipeline
from aioqless.cli.queues import failed, queues, unfail
from aioqless.cli.recurring import recurring
from aioqless.cli.web import web, web_user
from aioqless.cli.worker import worker
from aioqless.cli.workers import quiet, resume, subscribe, unsubscribe, workers
from aioqless.embedded import NoServer
from aioqless.errors import AioqlessError

__all__ = [
    "check",
    "failed",
    "get",
    "intake",
    "lua",
    "main",
    "outbox",
    "pipeline",
    "put",
    "queues",
    "quiet",
    "recurring",
    "resume",
    "subscribe",
    "unfail",
    "unsubscribe",
    "web",
    "web_user",
    "worker",
    "workers",
]


def main() -> None:
    """Run the command that argv names, and exit."""
    try:
        app()
    except (AioqlessError, ValueError, TypeError) as error:
        sys.exit(_told(error, REFUSED))
    except (exceptions.RedisError, NoServer) as error:
        sys.exit(_told(error, UNREACHABLE))


def _told(error: Exception, code: int) -> int:
    print(f"aioqless: {error}", file=sys.stderr)
    return code
