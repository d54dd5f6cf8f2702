"""A form for a new job, of the parameters of its handler."""

from __future__ import annotations

import inspect
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from aioqless.client.json_types import JsonType, encode
from aioqless.contrib.dashboard.page_request import Page, PageRequest
from aioqless.handlers import Handler


@dataclass(frozen=True)
class Parameter:
    """A parameter of a handler; its type and its default, if it has one, are code."""

    name: str
    type: str
    default: str
    required: bool
    decoder: Any

    def read(self, text: str) -> object:
        """Return what a user has typed: a string where the type takes it, else JSON.

        Raises:
            ValueError: The parameter takes no such value.
        """
        quoted = encode(text)
        candidates = [text.encode(), quoted] if self.type == "Any" else [quoted, text.encode()]
        for candidate in candidates:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                self.decoder.decode(msgspec.Raw(candidate))
                return msgspec.json.decode(candidate)
        raise ValueError(f"{self.name} must be {self.type}")


async def show_form(request: PageRequest) -> Page:
    """Show the handlers, and a form for a job of one of them."""
    handlers, klass = request.dashboard.handlers, request.text("klass")
    handler = handlers.get(klass)
    values = {
        "klasses": sorted(handlers),
        "handler": handler,
        "parameters": list_parameters(handler) if handler else [],
    }
    return Page("new_job.html", "New job", values, live=False)


def list_parameters(handler: Handler) -> list[Parameter]:
    """Return what the function of a handler takes after the job; nothing if it takes `Job[T]`."""
    takes = handler.takes
    found = []
    for name, hint, *default in takes.fields:
        decoder = takes.others.get(name) or JsonType(hint)
        annotation = takes.signature.parameters[name].annotation if takes.signature else hint
        shown = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        if annotation is inspect.Parameter.empty:
            shown = "Any"
        found.append(
            Parameter(
                name, shown, repr(default[0]) if default else "", name in takes.required, decoder
            )
        )
    return found
