"""Values of annotated types as JSON: those of msgspec, and pydantic's.

msgspec knows dataclasses, Structs, TypedDicts, enums, dates and the like. An annotation with a type
of pydantic's is left to pydantic as a whole, which is imported for such types alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeVar, get_args, get_origin

import msgspec
from msgspec import inspect

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")
Hint: TypeAlias = Any  # an annotation: a class, a union, Annotated[...]

_MASKED = b'"**********"'  # what pydantic writes for a SecretStr
_MAX_PROBLEMS = 5  # of a value that are listed in an error message
_JSON_TYPES = (str, bool, int, float, dict, list)
_PLAIN_TYPES = (*_JSON_TYPES, Any, None)
_NO_KEYS = (
    inspect.CollectionType,
    inspect.TupleType,
    inspect.DictType,
    inspect.StructType,
    inspect.DataclassType,
    inspect.TypedDictType,
    inspect.NamedTupleType,
)


def is_pydantic(hint: Hint) -> bool:
    """Return whether an annotation, or a part of it, is for pydantic to validate."""
    if hasattr(hint, "__pydantic_validator__") or hasattr(hint, "__get_pydantic_core_schema__"):
        return True
    if type(hint).__module__.partition(".")[0] in ("pydantic", "annotated_types"):
        return "pydantic" in sys.modules
    return any(map(is_pydantic, (*get_args(hint), *getattr(hint, "__metadata__", ()))))


class JsonType(Generic[T]):
    """Reads JSON as the values of a type.

    Args:
        hint: The type.
        path: Where the values are in the data, for errors.
    """

    def __init__(self, hint: type[T] | Hint, path: str = "$") -> None:
        self.hint = hint
        self._path = path

    @cached_property
    def decode(self) -> Callable[[bytes | msgspec.Raw], T]:
        """The function that makes the value of JSON; it raises a msgspec.MsgspecError.

        Made when it is first used: a class may refer to others that are defined after it.
        """
        if is_pydantic(self.hint):
            return partial(_validate, _make_adapter(self.hint), self._path)
        return msgspec.json.Decoder(self.hint, dec_hook=_decode_other).decode

    def find_problem(self, *, optional: bool = False) -> str | None:
        """Return why values of the type can't be written as JSON; None if they can.

        A type that refers to a class which is defined later has no problem that can be found.

        Args:
            optional: There may be no value. Then only types that can't be read at all are problems.
        """
        if self.hint in _PLAIN_TYPES:
            return None
        try:
            if is_pydantic(self.hint):
                return _find_pydantic_problem(self.hint)
            info = inspect.type_info(self.hint)
        except (NameError, AttributeError):
            return None
        except TypeError as error:
            return str(error)
        return None if optional else _find_problem(info, set())


def _find_pydantic_problem(hint: Hint) -> str | None:
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

    try:
        _make_adapter(hint)
    except PydanticSchemaGenerationError as error:
        return str(error).splitlines()[0]
    except PydanticUserError:  # a class that is defined later
        return None
    return None


def _find_problem(found: inspect.Type | inspect.Field, seen: set[int]) -> str | None:
    """Return why JSON has no values of a type, or of one that it is made of."""
    if id(found) in seen:
        return None
    seen.add(id(found))
    if isinstance(found, inspect.CustomType):
        return None if _is_in_json(found.cls) else _explain(found.cls)
    if isinstance(found, inspect.DictType) and isinstance(found.key_type, _NO_KEYS):
        return f"keys in JSON are strings, which give no {_name(found.key_type)}: use a str"
    for name in found.__struct_fields__:
        inner = getattr(found, name)
        for each in inner if isinstance(inner, tuple) else (inner,):
            if isinstance(each, inspect.Field) and not each.required:
                continue
            problem = isinstance(each, inspect.Type | inspect.Field) and _find_problem(each, seen)
            if problem:
                return problem
    return None


def _name(found: inspect.Type) -> str:
    cls: type = getattr(found, "cls", type(found))
    return cls.__name__.removesuffix("Type").removeprefix("Var").lower()


def _is_in_json(cls: Hint) -> bool:
    """Return whether JSON has values of a class that msgspec doesn't know, such as `Hashable`."""
    if is_pydantic(cls):
        return True
    if hasattr(cls, "__class_getitem__"):  # `Iterable[int]`: msgspec would check no items
        return False
    try:
        return any(issubclass(each, cls) for each in _JSON_TYPES)
    except TypeError:  # `Iterable[int]`, protocols
        return False


def _explain(cls: Hint) -> str:
    """Return what to use instead of a class."""
    kind = get_origin(cls) or cls
    instead = "a str, a dataclass, a TypedDict or a pydantic model"
    if isinstance(kind, type) and not getattr(kind, "_is_protocol", False):
        similar = [each for each in _JSON_TYPES if issubclass(kind, each)]
        similar += [list] if issubclass(list, kind) else []
        instead = similar[0].__name__ if similar else instead
    return f"JSON has no {getattr(kind, '__name__', kind)}; use {instead}"


def to_builtins(value: object) -> object:
    """Return a value as JSON's dicts, lists, texts and numbers."""
    return msgspec.to_builtins(value, enc_hook=_encode_other)


def _encode_other(value: object) -> object:
    """Return a value that msgspec doesn't know as one that it knows."""
    for kind in (str, float, int):  # a value of a subclass, such as a Jid, as one of the class
        if isinstance(value, kind):
            return kind.__getnewargs__(value)[0]  # type: ignore[arg-type]  # it is of the class
    if not is_pydantic(type(value)):
        raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")
    from pydantic_core import to_json

    text = to_json(value, by_alias=True, round_trip=True)
    if _MASKED in text:
        raise TypeError(
            f"{type(value).__name__} has a secret, which pydantic writes as asterisks: declare a "
            "str, and let Client(codec=Encryption(key)) encrypt the data"
        )
    return msgspec.json.decode(text)


def _decode_other(hint: Hint, value: object) -> object:
    """Return a value of a type that msgspec doesn't know, within one that it knows."""
    if is_pydantic(hint):
        return _validate(_make_adapter(hint), hint.__name__, msgspec.json.encode(value))
    if isinstance(value, hint):
        return value
    raise TypeError(f"Expected `{hint.__name__}`, got `{type(value).__name__}`")


def _make_adapter(hint: Hint) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(hint)


def _validate(adapter: TypeAdapter[T], path: str, text: bytes | msgspec.Raw) -> T:
    from pydantic import ValidationError

    try:
        return adapter.validate_json(bytes(text))
    except ValidationError as error:
        _raise_problems(error, path)


def _raise_problems(error: ValidationError, path: str) -> NoReturn:
    problems = [
        f"{problem['msg']} - at `{'.'.join([path, *map(str, problem['loc'])])}`"
        for problem in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    more = f"; and {len(problems) - _MAX_PROBLEMS} more" if len(problems) > _MAX_PROBLEMS else ""
    raise msgspec.ValidationError("; ".join(problems[:_MAX_PROBLEMS]) + more) from None


# Encodes a value as JSON; raises TypeError, ValueError or msgspec.MsgspecError for others.
encode = msgspec.json.Encoder(enc_hook=_encode_other).encode
