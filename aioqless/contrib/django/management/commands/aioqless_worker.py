"""`manage.py aioqless_worker`: runs the tasks of a backend."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from redis import exceptions

from aioqless.cli.exit_codes import REFUSED, UNREACHABLE
from aioqless.cli.worker_command import Host, run_worker
from aioqless.contrib.django.backend import find_backend
from aioqless.contrib.django.handlers import worker_sources
from aioqless.errors import AioqlessError, ServerUnavailable
from aioqless.runtime import os_signals


class Command(BaseCommand):
    """Runs a worker; its words are options of Django, `--backend`, and those of the worker."""

    help = "Runs the tasks of a backend of TASKS; takes the options of `aioqless worker`, too."

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._program = "manage.py aioqless_worker"
        self._worker_words: list[str] = []
        self._own_words = 0

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return the parser of what isn't the worker's, as `--help` is."""
        kwargs |= {"add_help": False, "allow_abbrev": False}
        return super().create_parser(prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the option that the worker doesn't have."""
        parser.add_argument("--backend", default="default", help="The alias of the backend.")

    def run_from_argv(self, argv: list[str]) -> None:
        """Run a command line of manage.py."""
        os_signals.prepare_worker()
        self._program, words = " ".join(argv[:2]), argv[2:]
        _, self._worker_words = self.create_parser(*argv[:2]).parse_known_args(words)
        own = _without(words, self._worker_words)
        self._own_words = len(own)
        super().run_from_argv([*argv[:2], *own])

    def handle(self, *_: Any, backend: str, **_options: Any) -> None:
        """Run the worker, and exit with its code.

        Raises:
            CommandError: A setting or an option is refused, or Redis can't be used.
        """
        try:
            sys.exit(run_worker(self._worker_words, self._host(backend)))
        except (exceptions.RedisError, ServerUnavailable) as error:
            raise CommandError(str(error), returncode=UNREACHABLE) from error
        except (AioqlessError, ImproperlyConfigured, TypeError, ValueError) as error:
            raise CommandError(str(error), returncode=REFUSED) from error

    def _host(self, alias: str) -> Host:
        backend = find_backend(alias)
        return Host(
            program=self._program,
            collect=lambda modules: worker_sources(backend, modules),
            queues=sorted(backend.queues) or ("*",),
            url=backend.settings.url,
            namespace=backend.settings.namespace,
            own_words=self._own_words,
        )


def _without(words: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return words without others, which are among them in the same order."""
    left, found = list(others), []
    for word in words:
        if left and word == left[0]:
            left.pop(0)
        else:
            found.append(word)
    return found
