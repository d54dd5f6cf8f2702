"""Handlers that can't run in a process are refused when the worker is created."""

from __future__ import annotations

from typing import Any

import pytest

from aioqless import Client, Job, Worker, job


def test_handler_that_cannot_be_imported_in_a_process_is_refused(
    client: Client,
) -> None:
    @job(executor="process")
    def local(job: Job[Any]) -> None: ...

    with pytest.raises(
        ValueError,
        match=r"local is to run in a process, which doesn't find it as .*local in .*test_executors",
    ):
        Worker(client, local)


def test_handler_of_the_main_script_is_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    @job(executor="process")
    def local(job: Job[Any]) -> None: ...

    monkeypatch.setattr(local.fn, "__module__", "__main__")
    with pytest.raises(
        ValueError, match="can't import it from the main script: move it to a module"
    ):
        Worker(client, local)
