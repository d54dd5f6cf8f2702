"""The application: its keys and its first screen."""

from __future__ import annotations

from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from aioqless.client import Client
from aioqless.contrib.top.start import StartScreen


class Top(App[None]):
    """Shows a namespace on the terminal, until `q` is pressed."""

    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = "top.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,ctrl+c", "quit", "Quit")]

    def __init__(self, client: Client, every: float) -> None:
        super().__init__()
        self._client = client
        self._every = every

    def get_default_screen(self) -> StartScreen:
        """Return the first screen."""
        return StartScreen(self._client, self._every)
