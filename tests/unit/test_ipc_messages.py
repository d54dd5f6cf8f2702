"""Messages between a worker and its processes: errors and jobs survive the transfer."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from aioqless import Fail, Job, LockLost, Retry
from aioqless.contrib.process_pool.ipc import (
    LENGTH,
    JobReply,
    error_of,
    reply_with_error,
)
from tests.unit.records import run_of


def sent(error: BaseException) -> BaseException:
    """Return a raised error as it arrives at the other end."""
    try:
        raise error
    except BaseException as raised:
        packed = opened(reply_with_error(raised)).error
    assert packed
    return error_of(packed)


def opened(frame: bytes) -> JobReply:
    assert LENGTH.unpack(frame[: LENGTH.size])[0] == len(frame) - LENGTH.size
    answer: JobReply = pickle.loads(frame[LENGTH.size :])
    return answer


def test_error_keeps_its_message() -> None:
    again, failed = (
        sent(Retry("not now", delay=30, group="later")),
        sent(Fail("refused", group="refused")),
    )
    assert isinstance(again, Retry) and (again.delay, again.group, again.message) == (
        30,
        "later",
        "not now",
    )
    assert isinstance(failed, Fail) and (failed.group, failed.message) == ("refused", "refused")


def test_error_with_other_constructor_arguments_arrives_intact() -> None:
    lost = sent(LockLost("complete", "LOCKLOST", {"jid": "a", "holder": "w"}))
    assert isinstance(lost, LockLost) and (lost.jid, lost.holder, lost.command) == (
        "a",
        "w",
        "complete",
    )


@pytest.mark.parametrize("read", [True, False])
def test_job_arrives_with_its_changed_data(read: bool) -> None:
    run = run_of(data='{"a": 1}', tags=["x"])
    if read:
        Job[Any](run).data["a"] = 2
    other = pickle.loads(pickle.dumps(run.detach()))
    there: Job[Any] = Job(other)
    assert there.data == {"a": 2 if read else 1} and (there.tags, there.raw_data, there.fence) == (
        ["x"],
        '{"a": 1}',
        1,
    )
    assert other.changed_data() == (b'{"a":2}' if read else None)


async def test_job_in_a_process_refuses_calls_with_the_reason() -> None:
    with pytest.raises(
        Exception, match="release: a job in a process of its own has no connection to Redis"
    ):
        await Job(pickle.loads(pickle.dumps(run_of().detach()))).release()


class Report(Exception):
    """An exception with much to say."""

    def __init__(self, rows: object) -> None:
        super().__init__("rows", rows)
        self.rows, self.code = rows, 7


@pytest.mark.parametrize("rows", ["x" * 10_000_000, b"x" * 10_000_000, ["x" * 10_000_000]])
def test_huge_error_is_cut_before_it_is_sent(rows: object) -> None:
    with pytest.raises(Report) as raised:
        raise Report(rows)
    reply = reply_with_error(raised.value)
    packed = opened(reply).error
    assert packed and len(reply) < 100_000
    found = error_of(packed)
    assert type(found) is Report and str(found)[:20] == str(raised.value)[:20]
    assert isinstance(rows, list) or vars(found) == {"rows": rows[:10_000], "code": 7}  # type: ignore[index]


def test_retry_with_a_huge_message_keeps_its_delay() -> None:
    again = sent(Retry("x" * 10_000_000, delay=30, group="later"))
    assert isinstance(again, Retry) and (again.delay, again.group) == (30, "later")
    assert again.message == "x" * 10_000
