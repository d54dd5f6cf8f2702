"""The command `flask aioqless worker`."""

from __future__ import annotations

from collections.abc import Sequence

import click
from flask.cli import AppGroup, ScriptInfo
from redis import exceptions

from aioqless.cli.exit_codes import UNREACHABLE
from aioqless.cli.worker_command import Host, run_worker
from aioqless.contrib.flask.app_context import AppSource, worker_sources
from aioqless.errors import AioqlessError, ServerUnavailable
from aioqless.handlers import Handlers, Source
from aioqless.runtime import os_signals

group = AppGroup("aioqless", help="Run jobs.")


@group.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def worker(context: click.Context, arguments: tuple[str, ...]) -> None:
    """Run a worker; takes the arguments of `aioqless worker`."""
    os_signals.prepare_worker()
    info = context.ensure_object(ScriptInfo)
    app = info.load_app()

    def collect(modules: Sequence[Source]) -> Sequence[Source]:
        Handlers.collect(*modules)  # raises if none has a handler
        return worker_sources(app, modules, AppSource(info.app_import_path, info.create_app))

    host = Host(
        program="flask aioqless worker",
        collect=collect,
        url=app.config.get("AIOQLESS_URL"),
        namespace=app.config.get("AIOQLESS_NAMESPACE"),
    )
    try:
        context.exit(run_worker(arguments, host))
    except (exceptions.RedisError, ServerUnavailable) as error:
        raise _Unreachable(str(error)) from error
    except (AioqlessError, TypeError, ValueError) as error:
        raise click.ClickException(str(error)) from error


class _Unreachable(click.ClickException):
    """Redis can't be used."""

    exit_code = UNREACHABLE
