"""Puts that travel together do so in portions that Redis works off quickly."""

from typing import Any

import pytest

from aioqless.client.put import NewJob
from aioqless.client.put.put_batcher import batches


def put(
    data: str = "{}", tags: list[str] | None = None, depends: list[str] | None = None
) -> dict[str, Any]:
    return {"data": data, "tags": tags, "depends": depends}


@pytest.mark.parametrize(
    ("each", "together"),
    [
        (put(), [50] * 5),
        (put("x" * 20_000), [13] * 19 + [3]),
        (put(tags=["x"] * 50), [50] * 5),
        (put(tags=["x"] * 300, depends=["a"] * 300), [8] * 31 + [2]),
        (put("x" * 300_000), [1] * 250),
        (put(tags=["x"] * 1_000, depends=["a"] * 5_000), [1] * 250),
    ],
)
def test_a_call_takes_so_many_jobs_bytes_and_names(
    each: dict[str, Any], together: list[int]
) -> None:
    assert [len(batch) for batch in batches([each] * 250)] == together


def test_nothing_makes_no_call() -> None:
    assert list(batches([])) == []


@pytest.mark.parametrize("job", ["app.greet", NewJob("app.greet")])
def test_an_option_that_put_does_not_have_is_named_with_those_that_it_has(job: Any) -> None:
    options: Any = {"deley": 60, "delay": 60}
    with pytest.raises(TypeError, match=r"put has no option deley; it has .*delay"):
        NewJob.of(job, None, options)
