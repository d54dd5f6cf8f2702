"""Batches of puts have a limited size."""

from typing import Any

import msgspec
import pytest

from aioqless.client import PutManyRow
from aioqless.client.new_job import NewJob, encode_job
from aioqless.client.put_sender import split


def put(
    data: str = "{}", tags: list[str] | None = None, depends: list[str] | None = None
) -> PutManyRow:
    job = NewJob("app.greet", msgspec.Raw(data.encode()), tags=tags, depends=depends)
    return encode_job(job, 1 << 20)


@pytest.mark.parametrize(
    ("each", "together"),
    [
        (put(), [50] * 5),
        (put(f'"{"x" * 19_998}"'), [13] * 19 + [3]),
        (put(tags=["x"] * 50), [50] * 5),
        (put(tags=["x"] * 300, depends=["a"] * 300), [8] * 31 + [2]),
        (put(f'"{"x" * 300_000}"'), [1] * 250),
        (put(tags=["x"] * 1_000, depends=["a"] * 5_000), [1] * 250),
    ],
)
def test_batch_is_limited_by_jobs_bytes_and_names(each: PutManyRow, together: list[int]) -> None:
    assert [len(batch) for batch in split([each] * 250)] == together


@pytest.mark.parametrize("job", ["app.greet", NewJob("app.greet")])
def test_unknown_option_of_put_is_named_with_the_known_ones(job: Any) -> None:
    options: Any = {"deley": 60, "delay": 60}
    with pytest.raises(TypeError, match=r"put has no option 'deley'; did you mean 'delay'"):
        NewJob.of(job, None, options)
