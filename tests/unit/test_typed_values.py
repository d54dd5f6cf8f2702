"""Data and results of annotated types: those of msgspec, and pydantic's."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, Field, HttpUrl, PositiveInt, SecretStr

from aioqless import InvalidData, Job, NewJob, Next, job
from aioqless.client.new_job import encode_job
from aioqless.handlers import Handler
from aioqless.testing import perform
from aioqless.worker.outcome import RunCompleted, RunFailed

MAX = 10_000


class User(BaseModel):
    name: str
    born: dt.date
    user_id: int = Field(alias="userId", default=0)


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


@dataclass
class Box:
    user: User
    size: int = 1


class Crate(msgspec.Struct):
    boxes: list[Box]


class Sizes(TypedDict):
    width: int


class Login(BaseModel):
    password: SecretStr


class Thumb(BaseModel):
    width: int


ADA = User(name="Ada", born=dt.date(1815, 12, 10), userId=7)
Pet = Annotated[Cat | Dog, Field(discriminator="kind")]

taken: list[Any] = []


@job(klass="User")
async def take_user(job: Job[Any], user: User, note: str = "") -> None:
    taken.append(user)


@job(klass="Pets")
async def take_pets(job: Job[Any], pets: list[Pet]) -> None:
    taken.append(pets)


@job(klass="Crate")
async def take_crate(job: Job[Any], crate: Crate, sizes: Sizes) -> None:
    taken.append((crate, sizes))


@job(klass="Limits")
async def take_limits(
    job: Job[Any],
    few: Annotated[int, Field(le=3)] = 1,
    some: PositiveInt = 1,
    url: HttpUrl | None = None,
    fallback: User = ADA,
    short: Annotated[str, msgspec.Meta(max_length=3)] = "",
) -> None:
    taken.append((few, some, url, fallback, short))


@job(klass="Whole")
async def change_user(job: Job[User]) -> None:
    job.data.name = "Grace"


@pytest.mark.parametrize(
    ("new", "value"),
    [
        (take_user.data(ADA), ADA),
        (NewJob(take_user, {"user": ADA.model_dump(by_alias=True)}), ADA),
        (take_pets.data([Cat(kind="cat"), Dog(kind="dog")]), [Cat(kind="cat"), Dog(kind="dog")]),
        (
            take_crate.data(crate=Crate([Box(ADA)]), sizes={"width": 3}),
            (Crate([Box(ADA)]), {"width": 3}),
        ),
        (take_limits.data(), (1, 1, None, ADA, "")),
        (
            take_limits.data(few=3, url=HttpUrl("https://example.com/"), short="abc"),
            (3, 1, HttpUrl("https://example.com/"), ADA, "abc"),
        ),
    ],
)
async def test_values_reach_the_handler_as_they_were_put(new: NewJob, value: object) -> None:
    taken.clear()
    assert (await perform(new)).error is None
    assert taken == [value]


@pytest.mark.parametrize(
    ("handler", "data", "why"),
    [
        (
            take_user,
            {"user": {"name": "Ada", "born": "long ago"}},
            r"valid date.*at `\$.user.born`",
        ),
        (take_user, {"user": {"born": "1815-12-10"}}, r"Field required - at `\$.user.name`"),
        (take_pets, {"pets": [{"kind": "cow"}]}, r"expected tags.*at `\$.pets.0`"),
        (take_crate, {"crate": {"boxes": [{"user": {}}]}, "sizes": {"width": 1}}, "Field required"),
        (take_crate, {"crate": {"boxes": []}, "sizes": {"width": "wide"}}, "Expected `int`"),
        (take_limits, {"few": 4}, r"less than or equal to 3 - at `\$.few`"),
        (take_limits, {"some": 0}, r"greater than 0 - at `\$.some`"),
        (take_limits, {"short": "abcd"}, "length <= 3"),
    ],
)
def test_values_of_another_type_are_refused_at_put(
    handler: Handler[...], data: object, why: str
) -> None:
    with pytest.raises(InvalidData, match=f"{handler.klass} can't take this data: .*{why}"):
        encode_job(NewJob(handler, data), MAX)


async def test_whole_data_is_a_model_whose_changes_are_stored_and_unknown_keys_kept() -> None:
    done = await perform(
        NewJob(change_user, {"name": "Ada", "born": "1815-12-10", "userId": 7, "more": 1})
    )
    assert isinstance(done.outcome, RunCompleted) and done.outcome.data is not None
    assert msgspec.json.decode(done.outcome.data) == {
        "name": "Grace", "born": "1815-12-10", "userId": 7, "more": 1,
    }  # fmt: skip


def test_secret_that_pydantic_would_mask_is_refused() -> None:
    @job
    async def log_in(job: Job, login: Login) -> None: ...

    with pytest.raises(InvalidData, match=r"Login has a secret.*declare a str"):
        encode_job(log_in.data(Login(password=SecretStr("geheim"))), MAX)


def test_models_are_parts_of_unique_keys() -> None:
    @job(klass="Sync", unique=("user",))
    async def sync(job: Job[Any], user: User) -> None: ...

    again = NewJob(sync, {"user": {"userId": 7, "born": "1815-12-10", "name": "Ada"}})
    assert encode_job(sync.data(ADA), MAX)["constraints"] == encode_job(again, MAX)["constraints"]


@pytest.mark.parametrize("result", [Thumb(width=3), {"width": 3}])
async def test_result_is_checked_and_read_as_what_the_function_returns(result: Any) -> None:
    @job(result_ttl=60)
    async def shrink(job: Job) -> Thumb | Next | None:
        return result

    done = await perform(shrink.data())
    assert isinstance(done.outcome, RunCompleted) and done.outcome.result == b'60 {"width":3}'
    assert shrink.read_result({"width": 3}) == Thumb(width=3)
    with pytest.raises(InvalidData, match="valid integer"):
        shrink.read_result({"width": "wide"})


@pytest.mark.parametrize("result", [{"width": "wide"}, "wide", 3])
async def test_result_of_another_type_fails_the_job(result: Any) -> None:
    @job(klass="Shrink", result_ttl=60)
    async def shrink(job: Job) -> Thumb:
        return result

    done = await perform(shrink.data())
    assert isinstance(done.outcome, RunFailed) and done.outcome.group == "default-InvalidData"
    assert "can't be stored: the result is not what Shrink returns" in done.outcome.message


async def test_result_that_is_not_kept_is_not_checked() -> None:
    @job
    async def shrink(job: Job) -> Thumb:
        return "wide"  # type: ignore[return-value]  # on purpose

    assert isinstance((await perform(shrink.data())).outcome, RunCompleted)


def test_pydantic_is_not_imported_for_other_types() -> None:
    program = """
import sys
from dataclasses import dataclass
import aioqless, aioqless.worker
from aioqless.client.new_job import encode_job

@dataclass
class Box:
    size: int

@aioqless.job(klass="Take", result_ttl=5)
async def take(job: aioqless.Job, box: Box) -> Box: ...

encode_job(take.data(Box(1)), 1000)
take.read_result({"size": 1})
print(sorted(name for name in sys.modules if name.startswith("pydantic")))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "[]\n", done.stderr
