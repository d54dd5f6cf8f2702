"""Aioqless: the Flask extension."""

from __future__ import annotations

from flask import Flask, current_app

from aioqless import SyncClient
from aioqless.contrib.flask.worker_group import group

NAME = "aioqless"


class Aioqless:
    """The Flask extension: `queues = Aioqless(app)`, or `init_app` in a factory.

    The configuration is AIOQLESS_URL, AIOQLESS_NAMESPACE and AIOQLESS_TIMEOUT (seconds for one
    call) in `app.config`; what is missing is as in `aioqless.Client`. It adds the command `flask
    aioqless worker`.

    Args:
        app: The application.
    """

    def __init__(self, app: Flask | None = None) -> None:
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Make the application's client, and add the command.

        Args:
            app: The application.

        Raises:
            TypeError: A value in its configuration has the wrong type.
            ValueError: A value in its configuration is out of range.
        """
        app.extensions[NAME] = SyncClient(
            app.config.get("AIOQLESS_URL"),
            namespace=app.config.get("AIOQLESS_NAMESPACE"),
            timeout=app.config.get("AIOQLESS_TIMEOUT"),
        )
        app.cli.add_command(group)

    @property
    def client(self) -> SyncClient:
        """The synchronous client of the current application; all threads share it.

        Raises:
            RuntimeError: No application is current, or it has no `init_app`.
        """
        client = current_app.extensions.get(NAME)
        if not isinstance(client, SyncClient):
            raise RuntimeError(f"call init_app first: {current_app.name} has no aioqless")
        return client
