"""What a handler's function takes of a job's data, and which resources are injected."""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import sys
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import GenericAlias, MappingProxyType, NoneType, SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    NoReturn,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from aioqless.client import job_data
from aioqless.client.job import Failure, Job, JobRun
from aioqless.client.json_types import JsonType, is_pydantic
from aioqless.client.new_job import NONE, Names
from aioqless.client.put_options import PutOptions
from aioqless.errors import InvalidData


class _Inject:
    """Default of a parameter that is injected: a resource of its type, not a part of the data."""

    def __repr__(self) -> str:
        return "Inject"

    def __call__(self, *_: object) -> NoReturn:
        raise TypeError("write `pool: Pool = Inject`, without parentheses")


Inject: Any = _Inject()

Fields: TypeAlias = Sequence[tuple[Any, ...]]  # of a Struct: name, type, and default if any

# Names that handlers may import for type checkers alone.
_OWN_NAMES = {"Job": Job, "Failure": Failure, "Any": Any, "aioqless": sys.modules["aioqless"]}


@dataclass(frozen=True)
class Takes:
    """What a function takes: the data as the T of `Job[T]`, or parameters by name after the job."""

    whole: JsonType[object] | None = None
    named: JsonType[msgspec.Struct] | None = None  # all parameters, those of pydantic's types raw
    # Those of which msgspec leaves the value to others: to pydantic, or `MayHaveFailed`.
    others: Mapping[str, JsonType[object] | MayHaveFailed] = field(default_factory=dict)
    may_fail: Names = NONE  # those that take a Failure, too
    fields: Fields = ()  # of `named`
    signature: inspect.Signature | None = None  # of these parameters
    known: frozenset[str] = frozenset()  # their names
    required: frozenset[str] = frozenset()  # those without a default
    injected: Mapping[str, object] = field(default_factory=dict)  # types of resources, by parameter
    failure: inspect.Parameter | None = None  # the one that takes the failure it was put for

    def arguments(
        self, klass: str, text: bytes, run: JobRun | None = None, taken: Names = NONE
    ) -> dict[str, object]:
        """Return the values of the parameters.

        Keys that no parameter takes are ignored. Without data all parameters have their defaults. A
        list, which is what Sidekiq's clients push, fills them in their order.

        Args:
            klass: The klass, for the message of an error.
            text: The data as JSON.
            run: The run of the job, which gets its typed data.
            taken: Parameters that results of other steps are to fill, whose values are not read.

        Raises:
            InvalidData: The data doesn't fit.
        """
        value, arguments = self.check(klass, text, taken), dict[str, object]()
        if run is not None and self.whole is not None:
            run.read_as(value)
        elif run is not None and text == b"null":
            run.read_as_empty()
        if self.signature is not None:
            arguments = {name: getattr(value, name) for name in self.signature.parameters}
        if self.failure is not None and run is not None:
            if run.cause is None and self.failure.default in (inspect.Parameter.empty, Inject):
                raise InvalidData(
                    f"{klass} takes a Failure, and no on_failure put this job: give the parameter "
                    "the type `Failure | None` and the default None"
                )
            arguments[self.failure.name] = run.cause
        return arguments

    def check(
        self, klass: str, text: bytes, taken: Names = NONE, *, may_fail: bool = False
    ) -> object:
        """Return the value that the data is read as: T, or all parameters in one.

        Args:
            klass: The klass, for the message of an error.
            text: The data as JSON.
            taken: Parameters that results of other steps are to fill, whose values are not read.
            may_fail: Those steps may fail.

        Raises:
            InvalidData: The data doesn't fit.
        """
        if may_fail and (strict := taken - self.may_fail):
            raise InvalidData(
                f"{klass} runs if the step fails whose result is {min(strict)}: annotate it as "
                "`T | Failure`, or `Sequence[T | Failure]` for a group"
            )
        try:
            if self.named is None:
                return None if self.whole is None else self.whole.decode(text)
            if text == b"null":  # put without data
                text = b"{}"
            elif text.lstrip().startswith(b"["):
                text = self._named(text)
            named = _leave_unread(self.fields, taken) if taken else self.named
            value = named.decode(text)
            for name in self.others.keys() - taken:
                if isinstance(raw := getattr(value, name), msgspec.Raw):  # else it is the default
                    setattr(value, name, self.others[name].decode(raw))
            return value
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidData(f"{klass} can't take this data: {error}") from None

    def values(self, klass: str, text: bytes, taken: Names = NONE) -> dict[str, object]:
        """Return the data by field, parameters with their defaults included; raise InvalidData."""
        return {**job_data.decode_fields(text), **self.arguments(klass, text, taken=taken)}

    def _named(self, text: bytes) -> bytes:
        """Return a list of values as an object, by the names of the parameters in their order."""
        values = msgspec.json.decode(text, type=list[msgspec.Raw])
        parameters = self.signature.parameters.values() if self.signature else ()
        names = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
        if len(values) > len(names):
            raise msgspec.ValidationError(
                f"{len(values)} values for {len(names)} parameters ({', '.join(names)})"
            )
        return msgspec.json.encode(dict(zip(names, values, strict=False)))

    def data(self, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        """Return the data from which `arguments` makes these; raise TypeError if there is none."""
        if self.signature is not None:
            if not args and self.required <= kwargs.keys() <= self.known:
                return dict(kwargs)
            try:
                return dict(self.signature.bind(*args, **kwargs).arguments)
            except TypeError as error:
                unknown = [name for name in kwargs if name not in self.signature.parameters]
                what = f"there is no parameter {', '.join(unknown)}" if unknown else error
                hint = _explain_options(unknown)
                raise TypeError(f"{what}; the function takes {self.signature}{hint}") from None
        if kwargs or len(args) > 1:
            raise TypeError(
                "its function takes the data as a whole: pass it as one value"
                + _explain_options(kwargs)
            )
        return args[0] if args else None


def _leave_unread(fields: Fields, names: Names) -> JsonType[msgspec.Struct]:
    new = [(each[0], msgspec.Raw, *each[2:]) if each[0] in names else each for each in fields]
    return JsonType(msgspec.defstruct("Data", new, kw_only=True))


def _explain_options(names: Iterable[str]) -> str:
    options = [name for name in names if name in PutOptions.__annotations__]
    if not options:
        return ""
    return f"; options of put go to `client.put(handler.data(...), {options[0]}=...)`"


class HandlerTypes:
    """The types of a handler's function, which may be defined after it.

    Args:
        fn: The function, or a class of the older qless libraries.
        local_names: The variables of the function that it is defined in, if any.
        keeps_result: What it returns is stored, and so its type is needed.
        is_bulk: It takes a list of jobs, and returns a list of outcomes.

    Raises:
        TypeError: It takes no job, or variable arguments, or JSON has no values of a type.
    """

    def __init__(
        self,
        fn: Callable[..., object],
        local_names: Mapping[str, object],
        *,
        keeps_result: bool,
        is_bulk: bool = False,
    ) -> None:
        self._fn = fn
        self._is_bulk = is_bulk
        self._local_names = local_names
        self._keeps_result = keeps_result
        self.declared = self._read_parameters()
        if not self.unresolved:
            self.takes, self.returns = self.declared, self._read_return()
            self._local_names = {}  # so that they can be freed

    @property
    def unresolved(self) -> dict[str, object]:
        """The annotations that name nothing yet, by parameter."""
        types = type_hints(self._fn, self._local_names)
        return {
            name: hint
            for name, hint in _annotations(self._fn).items()
            if name not in types and (name != "return" or self._keeps_result)
        }

    @cached_property
    def takes(self) -> Takes:
        """What the function takes.

        Raises:
            TypeError: An annotation can't be resolved, so that data could not be checked.
        """
        for name, hint in self.unresolved.items():
            what = "its result" if name == "return" else name
            raise TypeError(
                f"{_name(self._fn)} annotates {what} with {hint!r}, "
                "a name that its module doesn't have at run time: import it outside of "
                "`if TYPE_CHECKING:`"
            )
        return self._read_parameters()

    @cached_property
    def returns(self) -> JsonType[object] | None:
        """The type of its results; None where it doesn't say, or returns nothing.

        Raises:
            TypeError: An annotation can't be resolved.
        """
        return self._read_return() if self.takes else None

    def _read_parameters(self) -> Takes:
        if inspect.isclass(self._fn):
            return Takes()
        return takes(self._fn, self._local_names, is_bulk=self._is_bulk)

    def _read_return(self) -> JsonType[object] | None:
        found = returns(self._fn, self._local_names, is_bulk=self._is_bulk)
        if found and self._keeps_result and (problem := found.find_problem()):
            raise TypeError(f"{_name(self._fn)} can't keep its result: {problem}")
        return found


def _name(fn: Callable[..., object]) -> str:
    return f"{fn.__module__}.{fn.__qualname__}"


def takes(
    fn: Callable[..., object], local_names: Mapping[str, object], *, is_bulk: bool = False
) -> Takes:
    """Inspect a function. What an annotation says that can't be resolved is not checked.

    Raises:
        TypeError: It takes no job, or variable arguments, or JSON has no values of a type.
    """
    parameters = list(inspect.signature(fn).parameters.values())
    if not parameters or parameters[0].kind not in (
        parameters[0].POSITIONAL_ONLY,
        parameters[0].POSITIONAL_OR_KEYWORD,
    ):
        raise TypeError(
            f"{fn.__qualname__} must take the job as its first parameter: write `job: Job`"
        )
    types, resources = type_hints(fn, local_names), injected_parameters(fn, local_names)
    first, *others = parameters
    if is_bulk:
        _read_bulk(fn, types, first, [each for each in others if each.name not in resources])
    failure = next((each for each in others if _is_failure(types.get(each.name))), None)
    if failure is not None:
        others.remove(failure)
        resources = {name: type_ for name, type_ in resources.items() if name != failure.name}
    if first.name in types and not _may_be_a_job(types[first.name]):
        raise TypeError(
            f"{fn.__qualname__} must take the job as its first parameter, data after it: write "
            f"`job: Job` before `{_shown(first)}`"
        )
    whole = get_args(types.get(first.name)) if get_origin(types.get(first.name)) is Job else ()
    if nameless := [
        each for each in others if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]:
        what = nameless[0].replace(annotation=inspect.Parameter.empty)
        raise TypeError(
            f"{fn.__qualname__} takes {what}, which nothing fills: data is passed by name, and all "
            "of it is in job.data"
        )
    others = [each for each in others if each.name not in resources]
    if not others:
        data = JsonType(whole[0]) if whole and whole[0] is not Any else None
        if data and (problem := data.find_problem()):
            raise TypeError(f"{_name(fn)} can't take {_shown(first)}: {problem}")
        return Takes(whole=data, injected=resources, failure=failure)
    hints = {each.name: types.get(each.name, Any) for each in others}
    failing = {name: MayHaveFailed(hint) for name, hint in hints.items() if _may_fail(hint)}
    hints |= {name: type_.hint for name, type_ in failing.items()}
    for each in others:
        problem = JsonType(hints[each.name]).find_problem(optional=each.default is not each.empty)
        if problem:
            raise TypeError(
                f"{_name(fn)} can't take {_shown(each)}: {problem}; a resource of the worker needs "
                "the default aioqless.Inject"
            )
    raw: dict[str, JsonType[object] | MayHaveFailed] = {
        name: JsonType(hint, f"$.{name}") for name, hint in hints.items() if is_pydantic(hint)
    }
    raw |= failing
    hints |= dict.fromkeys(raw, msgspec.Raw)
    fields = [
        (each.name, hints[each.name])
        if each.default is each.empty
        else (each.name, hints[each.name], each.default)
        for each in others
    ]
    struct = msgspec.defstruct(fn.__name__, fields, kw_only=True)
    return Takes(
        named=JsonType(struct),
        others=raw,
        may_fail=frozenset(failing),
        fields=fields,
        signature=inspect.Signature(others),
        known=frozenset(hints),
        required=frozenset(each.name for each in others if each.default is each.empty),
        injected=resources,
        failure=failure,
    )


def _read_bulk(
    fn: Callable[..., object],
    types: dict[str, object],
    first: inspect.Parameter,
    others: Sequence[inspect.Parameter],
) -> None:
    """Replace the type of a bulk handler's first parameter by that of one job of its list.

    Raises:
        TypeError: It is no list, or others that aren't injected follow.
    """
    if first.name in types:
        hint = _without_metadata(types[first.name])
        if get_origin(hint) is not list and hint is not list:
            raise TypeError(
                f"{fn.__qualname__} must take a list of jobs as its first parameter: write "
                "`jobs: list[Job[T]]`"
            )
        types[first.name] = get_args(hint)[0] if get_args(hint) else Job
    if others:
        raise TypeError(
            f"{fn.__qualname__} takes {_shown(others[0])}: a bulk handler takes jobs, each with "
            "its data, and resources with the default aioqless.Inject"
        )


def _is_failure(hint: object) -> bool:
    hint = _without_metadata(hint)
    return hint is Failure or (
        get_origin(hint) in (Union, UnionType) and set(get_args(hint)) == {Failure, NoneType}
    )


def _may_fail(hint: object) -> bool:
    """Return whether an annotation is `T | Failure`, or a list of these."""
    if get_origin(hint) in (list, Sequence):
        (hint,) = get_args(hint)
    return get_origin(hint) in (Union, UnionType) and Failure in get_args(hint)


class MayHaveFailed:
    """Reads what a step returned, or its failure; or a list of these.

    Args:
        hint: The annotation.
    """

    def __init__(self, hint: object) -> None:
        self._is_list = get_origin(hint) in (list, Sequence)
        one = get_args(hint)[0] if self._is_list else hint
        own = [each for each in get_args(one) if each is not Failure]
        result = functools.reduce(operator.or_, own)
        self.hint = GenericAlias(list, (result,)) if self._is_list else result  # without failures
        self._result: JsonType[object] = JsonType(result)

    def decode(self, text: msgspec.Raw) -> object:
        """Return the value; raise a msgspec.MsgspecError."""
        if not self._is_list:
            return self._read(text)
        return [self._read(each) for each in msgspec.json.decode(text, type=list[msgspec.Raw])]

    def _read(self, text: msgspec.Raw) -> object:
        if bytes(text).startswith(b'{"%s":' % job_data.FAILURE.encode()):
            return msgspec.json.decode(text, type=dict[str, Failure])[job_data.FAILURE]
        return self._result.decode(text)


def _may_be_a_job(hint: object) -> bool:
    hint = _without_metadata(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(_may_be_a_job(each) for each in get_args(hint))
    kind = get_origin(hint) or hint
    if kind is Any or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return True
    return issubclass(kind, Job) or issubclass(Job, kind)


def _shown(parameter: inspect.Parameter) -> str:
    return str(parameter.replace(default=inspect.Parameter.empty)).replace("'", "")


def returns(
    fn: Callable[..., object], local_names: Mapping[str, object], *, is_bulk: bool = False
) -> JsonType[object] | None:
    """Return the type of a function's results; None where it doesn't say, or returns nothing.

    Instructions for the worker, such as `Next`, are no result. Of a bulk handler: the type of one.
    """
    hint = type_hints(fn, local_names).get("return")
    if is_bulk:
        lists = [each for each in (hint, *get_args(hint)) if get_origin(each) in (list, Sequence)]
        hint = get_args(lists[0])[0] if lists else None
    if get_origin(hint) in (Union, UnionType):
        own = [each for each in get_args(hint) if not (_is_own(each) or _is_exception(each))]
        hint = functools.reduce(operator.or_, own) if own else None
    if hint in (None, NoneType, Any, object) or _is_own(hint):
        return None
    return JsonType(hint)


def _is_exception(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, Exception)


def _is_own(hint: object) -> bool:
    return getattr(hint, "__module__", "").partition(".")[0] == "aioqless"


def injected_parameters(
    fn: Callable[..., object], local_names: Mapping[str, object] = MappingProxyType({})
) -> dict[str, object]:
    """Return the parameters of a function that resources are injected into, with their types.

    Raises:
        TypeError: One has no type.
    """
    types = type_hints(fn, local_names)
    names = [
        each.name
        for each in inspect.signature(fn).parameters.values()
        if each.default is Inject or Inject in getattr(types.get(each.name), "__metadata__", ())
    ]
    if missing := [name for name in names if name not in types]:
        raise TypeError(f"{fn.__qualname__} must annotate {missing[0]} with the type of a resource")
    return {name: _without_metadata(types[name]) for name in names}


def _without_metadata(hint: object) -> object:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def type_hints(
    fn: Callable[..., object], local_names: Mapping[str, object] = MappingProxyType({})
) -> dict[str, object]:
    """Return the types of a function's parameters whose annotations can be resolved."""
    found: dict[str, object] = {}
    names = ChainMap(dict(local_names), getattr(inspect.unwrap(fn), "__globals__", {}), _OWN_NAMES)
    for name, hint in _annotations(fn).items():
        with contextlib.suppress(NameError, AttributeError):
            one = SimpleNamespace(__annotations__={name: hint})
            found |= get_type_hints(one, globalns={}, localns=names, include_extras=True)
    return found


def _annotations(fn: Callable[..., object]) -> Mapping[str, object]:
    if inspect.isclass(fn):  # its methods handle jobs
        return {}
    return getattr(inspect.unwrap(fn), "__annotations__", {})
