"""What can't run in a process is refused when the worker is made."""

from __future__ import annotations

from typing import Any

import pytest

from aioqless import Client, Job, Worker, job


def test_a_handler_that_a_process_would_not_find_is_refused_when_the_worker_is_made(
    client: Client,
) -> None:
    @job(executor="process")
    def local(job: Job[Any]) -> None: ...

    with pytest.raises(
        ValueError,
        match=r"local is to run in a process, which doesn't find it as .*local in .*test_executors",
    ):
        Worker(client, local)


def test_a_handler_of_the_main_script_is_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    @job(executor="process")
    def local(job: Job[Any]) -> None: ...

    monkeypatch.setattr(local.fn, "__module__", "__main__")
    with pytest.raises(
        ValueError, match="can't import it from the main script: move it to a module"
    ):
        Worker(client, local)


def test_an_executor_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="executor is 'process' or left out, not 'thread'"):
        job(executor="thread")  # type: ignore[call-overload]
