"""The script that counts the code on a job's way (`python -m tests.job_path`)."""

from __future__ import annotations

from tests.job_path import trace


async def test_put_and_run_of_a_job_are_traced(redis_url: str) -> None:
    put, stored = await trace(redis_url)
    assert put.commands == {"put"}
    assert stored.commands == {"pop_many", "complete_many"}
    names = {(function.file, function.name) for function in put.functions}
    assert {("client/client.py", "put"), ("client/new_job.py", "encode_job")} <= names
    names = {(function.file, function.name) for function in stored.functions}
    assert {("worker/outcome.py", "outcome_of"), ("worker/outcome_writer.py", "store")} <= names
    assert not {file for file, _ in names if file in ("worker/scheduler.py", "client/client.py")}
    assert 50 < put.statements < put.lines and 100 < stored.statements < stored.lines
