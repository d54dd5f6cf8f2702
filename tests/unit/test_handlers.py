"""Handlers: their klasses, and how they are called."""

from __future__ import annotations

import importlib
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from redis.asyncio import Redis

from aioqless import Client, Job, job
from aioqless.errors import DuplicateKlass, UnknownKlass
from aioqless.handlers import Handlers
from aioqless.handlers.retry_policy import RetryPolicy, fixed
from tests.unit.records import job_of, performed


@job
async def greet(job: Job[Any]) -> str:
    return f"hello {job.data}"


def module(name: str, **values: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    vars(made).update(values)
    return made


# Klass


def test_default_klass_is_the_path_of_the_function() -> None:
    assert greet.klass == f"{__name__}.greet"


def test_handler_can_have_another_klass_and_aliases() -> None:
    @job(klass="foo.bar.FooJob", aliases=["old.FooJob"], retries=3)
    def foo(job: Job[Any]) -> None: ...

    assert (foo.klass, foo.aliases) == ("foo.bar.FooJob", ("old.FooJob",))
    assert foo.put_defaults == {"retries": 3}
    handlers = Handlers([foo])
    assert handlers.find("foo.bar.FooJob") is handlers.find("old.FooJob") is foo


async def test_handler_can_be_called_like_its_function() -> None:
    assert await greet(job_of(data='"Ada"')) == "hello Ada"


@pytest.mark.parametrize("options", [{"klass": "a\nb"}, {"aliases": [""]}, {"retries": -1}])
def test_invalid_klass_is_refused_by_the_decorator(
    options: dict[str, Any],
) -> None:
    with pytest.raises(ValueError):
        job(**options)(lambda job: None)


@pytest.mark.parametrize("fn", [lambda: None, lambda *, job: None, lambda **jobs: None])
def test_function_without_a_job_parameter_is_refused(fn: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="must take the job as its first parameter"):
        job(fn)


@pytest.mark.parametrize(
    "kind", [str, int, dict[str, int], list, RetryPolicy, RetryPolicy | None, Annotated[int, "id"]]
)
def test_function_whose_first_parameter_is_data_is_refused(kind: Any) -> None:
    def charge(invoice: Any) -> None: ...

    charge.__annotations__["invoice"] = kind
    with pytest.raises(
        TypeError, match=r"data after it: write `job: Job` before `invoice: .*(str|int|list|Ret)"
    ):
        job(charge)


@pytest.mark.parametrize(
    "kind", [Job, Job[int], Any, object, Annotated[Job[int], "typed"], Job[int] | None]
)
def test_first_parameter_may_be_any_annotation_that_a_job_fits(kind: Any) -> None:
    def charge(order: Any) -> None: ...

    charge.__annotations__["order"] = kind
    assert job(charge).klass


# Collecting handlers


def test_only_handlers_of_a_module_are_collected() -> None:
    handlers = Handlers.collect(module("app", greet=greet, plain=len, number=1))
    assert list(handlers) == [greet] and len(handlers) == 1


def test_module_can_be_given_by_name() -> None:
    assert greet in list(Handlers.collect(__name__))


def test_handler_imported_by_two_modules_is_collected_once() -> None:
    assert len(Handlers.collect(module("a", greet=greet), module("b", hello=greet), greet)) == 1


def test_two_handlers_of_one_klass_are_refused() -> None:
    @job(klass="Greet")
    def one(job: Job[Any]) -> None: ...

    @job(klass="Other", aliases=["Greet"])
    def two(job: Job[Any]) -> None: ...

    with pytest.raises(DuplicateKlass, match=r"Greet is declared by both .*one and .*two"):
        Handlers.collect(one, two)


def test_alias_equal_to_the_klass_is_allowed() -> None:
    @job(klass="Greet", aliases=["Greet"])
    def one(job: Job[Any]) -> None: ...

    assert len(Handlers.collect(one)) == 1


def test_error_for_an_unknown_klass_lists_the_known_ones() -> None:
    with pytest.raises(
        UnknownKlass,
        match=f"there is no handler for klass 'Nobody'; this worker knows {greet.klass}",
    ):
        Handlers([greet]).find("Nobody")
    with pytest.raises(UnknownKlass, match="knows none"):
        Handlers().find("Nobody")


def test_second_handler_of_a_name_in_a_module_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "twice.py").write_text(
        "from aioqless import Job, job\n"
        + "@job(retries=1)\nasync def greet(job: Job) -> None: ...\n" * 2
    )
    with pytest.raises(DuplicateKlass, match=r"twice has two handlers of the name greet, .*: ren"):
        importlib.import_module("twice")


def test_module_with_handlers_can_be_reloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    source = "from aioqless import Job, job\n@job\nasync def greet(job: Job) -> None: ...\n"
    (tmp_path / "reloaded.py").write_text(source)
    module = importlib.import_module("reloaded")
    first = module.greet
    (tmp_path / "reloaded.py").write_text("# changed\n" + source)
    assert importlib.reload(module).greet is not first


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
def test_klass_from_redis_is_never_imported(klass: str) -> None:
    before = set(sys.modules)
    with pytest.raises(UnknownKlass):
        Handlers([greet]).find(klass)
    assert set(sys.modules) == before


def test_error_for_an_unknown_option_lists_the_known_ones() -> None:
    with pytest.raises(
        TypeError,
        match=r"@job has no option 'color'; it has aliases, .*klass, .*priority, queue",
    ):
        job(**{"color": 5})  # type: ignore[call-overload]


# Functions and classes


class Legacy:
    """A handler class as older libraries have them."""

    @staticmethod
    def mail(job: Job[Any]) -> str:
        return "the method named after the queue"

    @staticmethod
    def process(job: Job[Any]) -> str:
        return "process"


async def test_class_is_called_by_the_method_named_after_the_queue_or_process() -> None:
    handler = job(Legacy)
    assert await performed(handler, queue="mail") == "the method named after the queue"
    assert await performed(handler, queue="billing") == "process"


async def test_class_without_process_is_called_by_perform_as_coroutine_or_classmethod() -> None:
    class Modern:
        @classmethod
        async def perform(cls, job: Job[Any]) -> str:
            return cls.__name__

    assert await performed(job(Modern)) == "Modern"


async def test_class_without_a_method_for_the_queue_raises() -> None:
    class Empty: ...

    with pytest.raises(UnknownKlass, match="has no method 'mail', nor process or perform"):
        await performed(job(Empty))


@pytest.mark.parametrize("queue", ["__init__", "__class__", "__new__", "__reduce__", "mro"])
async def test_queue_name_cannot_select_special_or_inherited_object_methods(queue: str) -> None:
    assert await performed(job(Legacy), queue=queue) == "process"


@pytest.mark.parametrize(
    "retry_on", ["ConnectionError", ConnectionError(), (1,), BaseException, None]
)
def test_retry_on_must_be_exception_classes(
    retry_on: Any,
) -> None:
    with pytest.raises(TypeError, match="retry_on must be a class of exceptions, or several"):
        job(retry_on=retry_on)(lambda job: None)


# Handlers of a worker


def test_lists_of_handlers_and_modules_are_accepted() -> None:
    other = job(klass="Other")(lambda job: None)
    handlers = Handlers.collect([module("jobs", greet=greet), [other]], ())
    assert [handler.klass for handler in handlers] == [greet.klass, "Other"]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (job_of, "job_of is not a handler: decorate it with @aioqless.job"),
        (Handlers, "Handlers is not a handler: decorate it with @aioqless.job"),
        (
            {"Greet": greet},
            "a worker takes modules, their names, handlers, and lists of these (got {'Greet'",
        ),
        (None, "a worker takes modules, their names, handlers, and lists of these (got None)"),
        ([greet, 7], "a worker takes modules, their names, handlers, and lists of these (got 7)"),
    ],
)
def test_objects_other_than_handlers_and_modules_are_refused(source: Any, why: str) -> None:
    with pytest.raises(TypeError, match=re.escape(why)):
        Handlers.collect(source)


@pytest.mark.parametrize(
    ("sources", "why"),
    [
        ((), "a worker needs handlers: pass modules or handlers"),
        (([],), "a worker needs handlers: pass modules or handlers"),
        ((module("bare"),), "there is no handler in bare: decorate functions with @aioqless.job"),
    ],
)
def test_worker_without_handlers_is_refused(sources: tuple[Any, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Handlers.collect(*sources)


def test_error_for_an_unknown_klass_suggests_a_similar_one() -> None:
    with pytest.raises(UnknownKlass, match=f"did you mean '{greet.klass}'"):
        Handlers([greet]).find(greet.klass[:-1])


@pytest.mark.parametrize(
    ("retry_on", "dont_retry_on", "retried"),
    [
        (ConnectionError, (), [ConnectionError, ConnectionResetError]),
        ([ConnectionError, KeyError], (), [ConnectionError, ConnectionResetError, KeyError]),
        (ConnectionError, ConnectionResetError, [ConnectionError]),
        ((), KeyError, [ConnectionError, ConnectionResetError]),
        ((), (), []),
    ],
)
def test_errors_are_retried_by_class(
    retry_on: Any, dont_retry_on: Any, retried: list[type[Exception]]
) -> None:
    policy = RetryPolicy(retry_on, fixed(3), dont_retry_on)
    kinds = [ConnectionError, ConnectionResetError, KeyError]
    assert [kind for kind in kinds if policy.delay(kind(), 0) == 3] == retried


def test_handler_may_retry_all_but_some_errors() -> None:
    @job(dont_retry_on=KeyError, backoff=fixed(3))
    async def handler(job: Job) -> None: ...

    assert handler.retry is not None
    assert handler.retry.delay(ValueError(), 0) == 3
    assert handler.retry.delay(KeyError(), 0) is None


def test_other_missing_attributes_are_reported_as_usual() -> None:
    with pytest.raises(AttributeError, match=r"^'Handler' object has no attribute 'colour'$"):
        greet.colour  # type: ignore[attr-defined]  # noqa: B018  # on purpose


def test_client_of_a_redis_client_is_refused_with_a_reason() -> None:
    with pytest.raises(TypeError, match=r"takes the URL of Redis.*\(got Redis\)"):
        Client(Redis())  # type: ignore[arg-type]  # on purpose


def test_handlers_and_new_jobs_are_shown_in_short() -> None:
    @job(klass="app.jobs.greet")
    async def hello(job: Job, name: str) -> None: ...

    assert repr(hello) == "Handler(app.jobs.greet)"
    new = hello.data(name="Ada").with_options(delay=60)
    assert repr(new) == "NewJob('app.jobs.greet', {'name': 'Ada'}, delay=60)"
    assert len(repr(hello.data(name="x" * 10_000))) < 1_000


@pytest.mark.parametrize("wrong", [0, None, False])
def test_falsy_backoff_is_not_taken_for_the_default(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"fixed\(0\) retries at once \(got"):
        job(backoff=wrong, retry_on=ValueError)(lambda job: None)


def test_number_as_backoff_says_which_functions_make_one() -> None:
    why = r"fixed\(2\) or exponential\(2\) of aioqless\.handlers\.retry_policy"
    for options in ({"backoff": 2}, {"backoff": 2, "retry_on": ValueError}):
        with pytest.raises(TypeError, match=why):
            job(**options)(lambda job: None)
