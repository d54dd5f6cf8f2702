"""Types of parameters and results: those that JSON has no values of are refused by `@job`."""

from __future__ import annotations

import collections
import enum
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Optional, Protocol, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from pydantic import BaseModel, Field

from aioqless import Inject, Job, job
from aioqless.handlers import Handler
from aioqless.testing import perform


class Pool: ...


class Name(str): ...


class Reader(Protocol):
    def read(self) -> str: ...


class Color(enum.Enum):
    RED = "red"


class Pair(enum.Enum):
    ONE = (1, 2)


class Spec(TypedDict):
    width: int


class Point(NamedTuple):
    x: int = 0


class Model(BaseModel):
    n: int = 1


class Struct(msgspec.Struct):
    n: int = 1


@dataclass
class Data:
    n: int = 1


@dataclass
class Holder:
    pool: Pool


@dataclass
class Node:
    children: list[Node]
    model: Model | None = None


def declare(hint: object, **options: Any) -> Handler[...]:
    def handle(job: Job[Any], value: Any) -> Any:
        return value

    handle.__annotations__ = {"job": Job, "value": hint, "return": hint}
    return job(**options)(handle)


@pytest.mark.parametrize(
    ("hint", "why"),
    [
        (Pool, "JSON has no Pool; use a str, a dataclass, a TypedDict or a pydantic model"),
        (Pool | None, "JSON has no Pool"),
        (list[Pool], "JSON has no Pool"),
        (dict[str, Pool], "JSON has no Pool"),
        (Annotated[Pool, "x"], "JSON has no Pool"),
        (Holder, "JSON has no Pool"),
        (complex, "JSON has no complex"),
        (Name, "JSON has no Name; use str"),
        (collections.OrderedDict[str, int], "JSON has no OrderedDict; use dict"),
        (collections.deque[int], "JSON has no deque"),
        (Iterable[int], "JSON has no Iterable; use list"),
        (Callable[[int], int], "JSON has no Callable"),
        (type[int], "JSON has no type"),
        (Reader, "JSON has no Reader"),
        (Path, "JSON has no Path"),
        (ZoneInfo, "JSON has no ZoneInfo"),
        (re.Pattern[str], "JSON has no Pattern"),
        (dict[tuple[int, int], int], "keys in JSON are strings, which give no tuple: use a str"),
        (dict[Data, int], "keys in JSON are strings, which give no data: use a str"),
        (Pair, "Enums must contain either all str or all int values"),
        (Data | Struct, "Type unions may not contain more than one dict-like type"),
        (Model | Pool, "Unable to generate pydantic-core schema for <class '.*Pool'>"),
    ],
)
def test_type_without_values_in_json_is_refused_with_handler_parameter_and_alternative(
    hint: object, why: str
) -> None:
    with pytest.raises(TypeError, match=rf"handle can't take value: .*{why}.*aioqless.Inject"):
        declare(hint)

    def returning(job: Job[Any]) -> Any: ...

    returning.__annotations__ = {"job": Job, "return": hint}
    with pytest.raises(TypeError, match=rf"returning can't keep its result: {why}"):
        job(result_ttl=60)(returning)
    job(returning)  # its result is not stored

    def whole(job: Job[Any]) -> None: ...

    whole.__annotations__ = {"job": Job[hint]}  # type: ignore[valid-type]  # found at run time
    with pytest.raises(TypeError, match=rf"whole can't take job: .*{why}"):
        job(whole)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (Any, {"a": [1]}),
        (object, [1]),
        (Hashable, 1),
        (None, None),
        (set[int], {1, 2}),
        (frozenset[str], frozenset({"a"})),
        (bytes, b"\x00\xff"),
        (bytearray, bytearray(b"a")),
        (tuple[int, str], (1, "a")),
        (Sequence[int], [1]),
        (Mapping[str, int], {"a": 1}),
        (dict[int, str], {1: "a"}),
        (dict[Color, int], {Color.RED: 1}),
        (dict[date, int], {date(2030, 1, 31): 1}),
        (dict[UUID, int], {UUID(int=1): 1}),
        (datetime, datetime(2030, 1, 31, tzinfo=UTC)),
        (date, date(2030, 1, 31)),
        (time, time(12, 30)),
        (timedelta, timedelta(minutes=5)),
        (Decimal, Decimal("1.10")),
        (UUID, UUID(int=1)),
        (Color, Color.RED),
        (Literal["a", 1], "a"),
        (Spec, {"width": 1}),
        (Point, Point(2)),
        (Data, Data(2)),
        (Struct, Struct(2)),
        (Model, Model(n=2)),
        (Node, Node([Node([])], Model(n=2))),
        (Optional[int], None),  # noqa: UP045  # users write it
        (int | str | None, "a"),
        (Model | None, Model(n=2)),
        (list[Data | int], [Data(2), 1]),
        (Annotated[int, msgspec.Meta(ge=1)], 1),
        (Annotated[int, Field(ge=1)], 1),
    ],
)
async def test_value_of_every_other_type_arrives_and_returns_as_it_was_put(
    hint: object, value: object
) -> None:
    handler = declare(hint, result_ttl=60)
    ended = await perform(handler.data(value=value))
    assert ended.error is None
    assert ended.result == value and type(ended.result) is type(value)


async def test_parameter_without_annotation_takes_any_json() -> None:
    @job(result_ttl=60)
    def handle(job, value, more=None):  # type: ignore[no-untyped-def]  # as the test says
        return [value, more]

    assert (await perform(handler_data := handle.data({"a": 1}))).result == [{"a": 1}, None]
    assert handler_data.data == {"value": {"a": 1}}


async def test_parameter_of_another_type_with_a_default_or_injected_is_no_data() -> None:
    @job(result_ttl=60)
    def handle(job: Job[Any], n: int, pool: Pool | None = None, own: Pool = Inject) -> int:
        return n if pool is None else 0

    assert (await perform(handle.data(n=3), resources={Pool: Pool()})).result == 3


def test_class_that_is_defined_later_is_no_problem() -> None:
    declare(make_dataclass("Outer", [("inner", "Later")]))
