"""The types that handlers add to the API: of data that they take, and of their results."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from aioqless.client.json_types import is_pydantic
from aioqless.contrib.http_api.schemas import Failure, Progress
from aioqless.handlers import Handler


def name_handlers(handlers: Iterable[Handler]) -> dict[str, Handler]:
    """Return handlers by unique names for operations and types: the last part of their klass.

    Raises:
        ValueError: A klass can't be part of a path.
    """
    lasts: dict[str, list[Handler]] = {}
    for handler in handlers:
        if not re.fullmatch(r"[\w.-]+", handler.klass, re.ASCII):
            raise ValueError(
                f"klass {handler.klass!r} must consist of letters, digits, '.', '_' and '-', since "
                "it is part of a path: give the handler another one by @job(klass=...)"
            )
        lasts.setdefault(_identifier(handler.klass.rpartition(".")[2]), []).append(handler)
    return {
        last if len(several) == 1 else _identifier(handler.klass): handler
        for last, several in lasts.items()
        for handler in several
    }


def data_type(name: str, handler: Handler) -> Any:
    """Return the type of a handler's data; fields that it doesn't take are not allowed."""
    takes = handler.takes
    if takes.whole is not None:
        return takes.whole.hint
    if takes.named is None:
        return Any
    fields = [
        (each[0], takes.others[each[0]].hint, *each[2:]) if each[0] in takes.others else each
        for each in takes.fields
    ]
    return msgspec.defstruct(f"{name}_data", fields, kw_only=True, forbid_unknown_fields=True)


def result_type(name: str, handler: Handler) -> Any:
    """Return the type of the response that has a handler's result."""
    returns = Any if handler.returns is None else handler.returns.hint
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        ("state", str),
        ("progress", Progress | UnsetType, UNSET),
        ("result", returns | UnsetType if returns is not Any else Any, UNSET),
        ("failure", Failure | UnsetType, UNSET),
    ]
    return msgspec.defstruct(
        f"{name}_result", fields, omit_defaults=True, namespace={"__doc__": RESULT}
    )


RESULT = "The state of a job; its result if it is complete and keeps one; why it has failed."


class PydanticSchemas:
    """Schemas of types that msgspec leaves to others.

    Owns what these refer to, by name.
    """

    def __init__(self) -> None:
        self.components: dict[str, Any] = {}

    def describe(self, kind: type) -> dict[str, Any]:
        """Return the schema of a type: pydantic's, or any JSON."""
        if not is_pydantic(kind):
            return {"description": "Any JSON."}  # msgspec refuses an empty schema
        from pydantic import TypeAdapter

        prefix = re.sub(r"[^\w.-]", "_", f"{kind.__module__}.{kind.__qualname__}.")
        template = f"#/components/schemas/{prefix}{{model}}"
        schema = TypeAdapter(kind).json_schema(ref_template=template)
        self.components |= {prefix + name: each for name, each in schema.pop("$defs", {}).items()}
        return schema


def _identifier(text: str) -> str:
    return re.sub(r"\W", "_", text, flags=re.ASCII)
