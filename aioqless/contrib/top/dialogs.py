"""Screens on top of others: a question, a job in full, and an editor of its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec
from rich.console import Group
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Footer, Label, Static, TextArea

from aioqless.cli.json_input import validate_json
from aioqless.cli.presentation.job_detail import render_job
from aioqless.cli.presentation.json_output import indent_json
from aioqless.client.job import JobRecord
from aioqless.validation import plain


class Question(ModalScreen[bool]):
    """Asks whether to do something; the answer is False unless it is confirmed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "Yes"),
        Binding("n,escape", "dismiss(False)", "No"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """Build the screen."""
        with Vertical(classes="dialog"):
            yield Label(Text(self._question))
            with Horizontal():
                yield Button("No (n)", id="no")
                yield Button("Yes (y)", id="yes", variant="warning")

    def on_button_pressed(self, pressed: Button.Pressed) -> None:
        """Answer."""
        self.dismiss(pressed.button.id == "yes")


class JobDetails(ModalScreen[None]):
    """Shows a job: state, failure, data, dependencies, history."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "dismiss", "Back")]

    def __init__(self, job: JobRecord, states: Mapping[str, str]) -> None:
        super().__init__()
        self._lines = Group(*render_job(job, states))

    def compose(self) -> ComposeResult:
        """Build the screen."""
        with VerticalScroll(classes="page"):
            yield Static(self._lines)
        yield Footer()


class DataEditor(ModalScreen[msgspec.Raw | None]):
    """Edits the data of a job; the result is the new data, or None if it was given up."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "Save and retry", priority=True),
        Binding("escape", "dismiss", "Give up"),
    ]

    def __init__(self, job: JobRecord) -> None:
        super().__init__()
        self._jid = job.jid
        self._text = indent_json(job.text)

    def compose(self) -> ComposeResult:
        """Build the screen."""
        with Vertical(classes="page"):
            yield Label(Text(f"The data of {plain(self._jid)}", style="bold"))
            yield TextArea(self._text, tab_behavior="indent", show_line_numbers=True)
            yield Label("", id="error")
        yield Footer()

    def on_mount(self) -> None:
        """Let the user type at once."""
        self.query_one(TextArea).focus()

    def action_save(self) -> None:
        """Return the data, unless it isn't JSON."""
        try:
            self.dismiss(validate_json(self.query_one(TextArea).text))
        except ValueError as error:
            self.query_one("#error", Label).update(Text(str(error), style="bold red"))
