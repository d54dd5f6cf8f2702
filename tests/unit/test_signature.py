"""Parameters of handlers: filled from the data by name, or typed as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import msgspec
import pytest

from aioqless import Client, Inject, InvalidData, Job, NewJob, Worker, job
from tests.unit.records import perform_run, performed, run_of
from tests.unit.typed import Point

if TYPE_CHECKING:
    from decimal import Decimal as TypeOfTheTypeCheckerAlone


@job
async def greet(job: Job[Any]) -> str:
    return f"hello {job.data}"


@job
async def resize(
    job: Job[Any], path: str, width: int = 100, *, sharp: bool = False
) -> tuple[str, int, bool]:
    return path, width, sharp


# Data for a handler


def test_handler_creates_new_jobs_from_its_parameters() -> None:
    @job
    def whole(job: Job[list[int]]) -> None: ...

    assert resize.data("a.png", sharp=True) == NewJob(resize, {"path": "a.png", "sharp": True})
    assert whole.data([1, 2]) == NewJob(whole, [1, 2])
    assert greet.data("Ada") == NewJob(greet, "Ada")


def test_new_job_with_unknown_parameters_is_refused() -> None:
    with pytest.raises(TypeError, match="missing a required argument: 'path'"):
        resize.data(width=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes the data as a whole: pass it as one value"):
        greet.data(name="Ada")


def test_option_of_put_among_the_parameters_says_where_it_goes() -> None:
    for handler in (resize, greet):
        with pytest.raises(TypeError, match=r"`client.put\(handler.data\(...\), delay=...\)`"):
            handler.data(path="a.png", delay=60)  # type: ignore[call-arg]


# Parameters by name


async def test_job_without_data_uses_the_defaults() -> None:
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
async def test_parameters_are_filled_from_the_data_by_name(
    data: str, taken: tuple[str, int, bool]
) -> None:
    assert await performed(resize, data) == taken


@pytest.mark.parametrize(
    ("data", "taken"),
    [('["a.png"]', ("a.png", 100, False)), (' [ "a.png", 7 ]', ("a.png", 7, False))],
)
async def test_parameters_are_filled_from_a_list_in_their_order(
    data: str, taken: tuple[str, int, bool]
) -> None:
    assert await performed(resize, data) == taken


async def test_keyword_only_parameters_and_resources_are_not_filled_from_a_list() -> None:
    @job
    async def shown(
        job: Job[Any], first: list[int], there: str = Inject, second: float = 0.5, *, named: int = 1
    ) -> Any:
        return first, second, named

    assert shown.takes.arguments("shown", b"[[1, 2], 2.0]") == {
        "first": [1, 2],
        "second": 2.0,
        "named": 1,
    }
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
async def test_data_that_does_not_match_the_parameters_raises(data: str, why: str) -> None:
    with pytest.raises(InvalidData, match=f"(?i){resize.klass} can't take this data: .*{why}"):
        await performed(resize, data)


def test_data_is_checked_before_a_put() -> None:
    resize.check(b'{"path": "a.png"}')
    with pytest.raises(InvalidData):
        resize.check(b"{}")


async def test_mutable_default_is_copied_for_each_run() -> None:
    @job
    async def gather(job: Job[Any], into: list[int] = []) -> list[int]:  # noqa: B006
        into.append(1)
        return into

    assert await performed(gather, "{}") == [1]
    assert await performed(gather, "{}") == [1]


def test_annotation_imported_only_for_type_checkers_is_refused_at_first_use() -> None:
    @job
    async def pay(job: Job[Any], amount: TypeOfTheTypeCheckerAlone) -> None: ...

    @job
    async def plot(job: Job[TypeOfTheTypeCheckerAlone]) -> None: ...

    @job(result_ttl=60)
    async def add(job: Job[Any]) -> TypeOfTheTypeCheckerAlone: ...  # type: ignore[empty-body]

    for handler, what in ((pay, "amount"), (plot, "job"), (add, "its result")):
        why = f"{handler.fn.__name__} annotates {what} with '.*TypeOfTheTypeChecker.*TYPE_CHECKING"
        with pytest.raises(TypeError, match=why):
            handler.check(b'{"amount": "12.30"}')
    with pytest.raises(TypeError, match="annotates amount"):
        pay.data(amount="12.30")  # type: ignore[arg-type]


async def test_worker_with_an_unresolvable_annotation_refuses_to_start(client: Client) -> None:
    @job
    async def pay(job: Job[Any], amount: TypeOfTheTypeCheckerAlone) -> None: ...

    with pytest.raises(TypeError, match="annotates amount with 'TypeOfTheTypeCheckerAlone'"):
        Worker(client, [pay])


async def test_result_that_is_not_kept_may_have_a_type_for_type_checkers_alone() -> None:
    @job
    async def plot(job: Job[Point]) -> TypeOfTheTypeCheckerAlone:
        return job.data  # type: ignore[return-value]

    assert await performed(plot, '{"x": 1}') == Point(1, 0)


def test_job_may_be_imported_for_type_checkers_alone() -> None:
    names: dict[str, Any] = {}
    code = (
        "from __future__ import annotations\n"
        "def whole(job: Job[list[int]]) -> None: ...\n"
        "def named(job: aioqless.Job[Any], path: str) -> None: ..."
    )
    exec(code, names)
    assert job(names["whole"]).data([1]).data == [1]
    with pytest.raises(InvalidData, match="Expected `array`"):
        job(names["whole"]).check(b"1")
    with pytest.raises(InvalidData, match="Expected `str`"):
        job(names["named"]).check(b'{"path": 1}')


def test_class_that_is_defined_after_the_handler_is_checked() -> None:
    with pytest.raises(InvalidData, match="missing required field `number`"):
        bill.check(b'{"order": {}}')
    bill.check(b'{"order": {"number": 7}}')


@job(every=60, data={"order": {"number": 1}})
async def bill(job: Job[Any], order: Order) -> None: ...


class Order(msgspec.Struct):
    number: int


def test_class_of_the_enclosing_function_is_checked() -> None:
    class Local(msgspec.Struct):
        number: int

    @job
    async def pay(job: Job[Any], amount: Local) -> None: ...

    @job(queue="bills")
    async def send(job: Job[Local]) -> None: ...

    with pytest.raises(InvalidData, match="missing required field `number`"):
        pay.check(b'{"amount": {}}')
    with pytest.raises(InvalidData, match="missing required field `number`"):
        send.check(b"{}")


def test_positional_only_parameters_are_refused() -> None:
    async def args(job: Job[Any], *args: Any) -> None: ...
    async def kwargs(job: Job[Any], path: str, **kwargs: Any) -> None: ...
    async def place(job: Job[Any], path: str, /) -> None: ...

    for fn, what in ((args, r"\*args"), (kwargs, r"\*\*kwargs"), (place, "path")):
        with pytest.raises(
            TypeError,
            match=f"{fn.__name__} takes {what}, which nothing fills: data is passed by name",
        ):
            job(fn)


async def test_job_parameter_may_have_any_name() -> None:
    @job
    async def check(this: Job[Any], job: str) -> Any:
        return job

    assert await performed(check, '{"job": "a field of that name"}') == "a field of that name"


# All data as one type


class Person(TypedDict):
    name: str


async def test_data_is_converted_to_the_dataclass_of_the_job_type() -> None:
    @job
    async def plot(job: Job[Point]) -> Any:
        return job.data

    assert await performed(plot, '{"x": 1, "added": true}') == Point(1, 0)


async def test_data_is_converted_to_the_dict_of_the_job_type() -> None:
    @job
    async def hail(job: Job[Person]) -> Any:
        return job.data["name"]

    assert await performed(hail, '{"name": "Ada"}') == "Ada"
    with pytest.raises(InvalidData, match="missing required field `name`"):
        await performed(hail, "{}")


async def test_unchanged_typed_data_is_kept_unchanged() -> None:
    @job
    async def look(job: Job[Point]) -> Any:
        return job.data.x

    run = run_of(klass=look.klass, data='{"added": [ ], "x": 1}')
    assert await perform_run(look, run) == 1
    assert run.changed_data() is None


async def test_unknown_keys_survive_a_change_of_typed_data() -> None:
    @job
    async def move(job: Job[Point]) -> None:
        job.data.x = 5

    run = run_of(klass=move.klass, data='{"added": [ ], "x": 1, "y": 2}')
    await perform_run(move, run)
    changed = msgspec.json.decode(run.changed_data() or b"null")
    assert changed == {"added": [], "x": 5, "y": 2}
