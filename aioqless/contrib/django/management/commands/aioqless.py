"""`manage.py aioqless`: any command of aioqless, with the Redis and namespace of a backend."""

from __future__ import annotations

import argparse
import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand

from aioqless.cli.exit_codes import REFUSED
from aioqless.cli.main import main
from aioqless.contrib.django.backend import find_backend
from aioqless.contrib.django.management.commands.aioqless_worker import Command as WorkerCommand


class Command(BaseCommand):
    """Runs `aioqless`; beside its words, it takes `--backend` and Django's `--settings`."""

    help = "Runs a command of aioqless with the url and namespace of a backend of TASKS."

    def run_from_argv(self, argv: list[str]) -> None:
        """Run a command line of manage.py."""
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        parser.add_argument("--backend", default="default")
        for name in ("--settings", "--pythonpath"):
            parser.add_argument(name)  # which Django has read already
        own, words = parser.parse_known_args(argv[2:])
        if words[:1] == ["worker"]:  # it runs tasks
            others = argv[2:]
            others.remove("worker")
            WorkerCommand().run_from_argv([argv[0], "aioqless_worker", *others])
            return
        try:
            settings = find_backend(own.backend).settings
        except ImproperlyConfigured as error:
            self.stderr.write(f"CommandError: {error}")
            sys.exit(REFUSED)
        if settings.url is not None:
            os.environ["AIOQLESS_URL"] = settings.url
        if settings.namespace is not None:
            os.environ["AIOQLESS_NAMESPACE"] = settings.namespace
        sys.argv = ["aioqless", *words]
        main()
