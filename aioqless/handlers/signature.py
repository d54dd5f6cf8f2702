"""What a function takes of a job's data."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from aioqless.client.job import Job
from aioqless.errors import InvalidData


class _Inject:
    """The default of a parameter that doesn't come from a job's data: the resource of its type is
    handed to it."""

    def __repr__(self) -> str:
        return "Inject"


Inject: Any = _Inject()

DATA = (str, bytes, int, float, bool, list, tuple, set, dict)  # what no job is


@dataclass(frozen=True)
class Takes:
    """All of the data as the type T of `Job[T]`, or parameters by name behind the job."""

    whole: Any = None
    parameters: type[msgspec.Struct] | None = None
    signature: inspect.Signature | None = None  # of these parameters
    given: Mapping[str, Any] = field(
        default_factory=dict
    )  # the types of the resources it takes, by the names of their parameters

    def arguments(self, klass: str, text: bytes, job: Job | None = None) -> dict[str, Any]:
        """The parameters' values; the job, if given, gets its typed data. Keys that no parameter
        takes are left alone; no data leave all parameters to their defaults; a list, which is what
        sidekiq's clients push, fills them in their order.

        Raises InvalidData.
        """
        type_ = self.whole or self.parameters
        if type_ is None:
            return {}
        if self.parameters and text == b"null":  # put without data
            text = b"{}"
        try:
            if self.signature and text.lstrip().startswith(b"["):
                text = self._named(text)
            value = msgspec.json.decode(text, type=type_)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidData(f"{klass} can't take these data: {error}") from None
        if self.parameters is None:
            if job is not None:
                job.read_as(value)
            return {}
        return {name: getattr(value, name) for name in value.__struct_fields__}

    def values(self, klass: str, text: bytes) -> dict[str, Any]:
        """The data by the names of their fields, parameters with their defaults included. Raises
        InvalidData."""
        data = msgspec.json.decode(text)
        return (data if isinstance(data, dict) else {}) | self.arguments(klass, text)

    def _named(self, text: bytes) -> bytes:
        """A list of values as an object, by the names of the parameters in whose places they are.
        Raises msgspec's ValidationError."""
        values = msgspec.json.decode(text, type=list[msgspec.Raw])
        places = self.signature.parameters.values() if self.signature else ()
        names = [each.name for each in places if each.kind is each.POSITIONAL_OR_KEYWORD]
        if len(values) > len(names):
            raise msgspec.ValidationError(
                f"{len(values)} values for {len(names)} parameters ({', '.join(names)})"
            )
        return msgspec.json.encode(dict(zip(names, values, strict=False)))

    def data(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The data of which `arguments` would make these. Raises TypeError."""
        if self.signature is not None:
            return dict(self.signature.bind(*args, **kwargs).arguments)
        if kwargs or len(args) > 1:
            raise TypeError("its function takes the data as a whole: give them as one value")
        return args[0] if args else None


def takes(fn: Callable[..., Any]) -> Takes:
    """What a function takes. Raises TypeError for one that takes no job, or what has no name."""
    parameters = list(inspect.signature(fn).parameters.values())
    if not parameters or parameters[0].kind not in (
        parameters[0].POSITIONAL_ONLY,
        parameters[0].POSITIONAL_OR_KEYWORD,
    ):
        raise TypeError(f"{fn.__qualname__} must take the job as its first parameter")
    types, resources = hints(fn), given(fn)
    first, *others = parameters
    if (said := get_origin(types.get(first.name)) or types.get(first.name)) in DATA:
        raise TypeError(
            f"{fn.__qualname__} must take the job as its first parameter, data behind it; {first.name} is a {said.__name__}"
        )
    whole = get_args(types.get(first.name)) if get_origin(types.get(first.name)) is Job else ()
    if nameless := [
        each for each in others if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]:
        what = nameless[0].replace(annotation=inspect.Parameter.empty)
        raise TypeError(
            f"{fn.__qualname__} takes {what}, which nothing fills: data come by name, and all of them in job.data"
        )
    others = [each for each in others if each.name not in resources]
    if others:
        fields = [
            (each.name, types.get(each.name, Any))
            if each.default is each.empty
            else (each.name, types.get(each.name, Any), each.default)
            for each in others
        ]
        struct = msgspec.defstruct(fn.__name__, fields, kw_only=True)
        return Takes(parameters=struct, signature=inspect.Signature(others), given=resources)
    return Takes(whole=whole[0] if whole and whole[0] is not Any else None, given=resources)


def given(fn: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of a function that resources are handed to, and of which types. Raises
    TypeError where that isn't said."""
    names = [
        each.name for each in inspect.signature(fn).parameters.values() if each.default is Inject
    ]
    types = hints(fn) if names else {}
    if missing := [name for name in names if name not in types]:
        raise TypeError(
            f"{fn.__qualname__} must say of which type {missing[0]} is, for a resource to be given"
        )
    return {name: types[name] for name in names}


def hints(fn: Callable[..., Any]) -> dict[str, Any]:
    """The types of a function's parameters, without those that are imported for the type checker
    alone."""
    found: dict[str, Any] = {}
    for name, hint in getattr(inspect.unwrap(fn), "__annotations__", {}).items():
        with contextlib.suppress(NameError):
            one = SimpleNamespace(__annotations__={name: hint})
            found |= get_type_hints(one, globalns=getattr(inspect.unwrap(fn), "__globals__", {}))
    return found
