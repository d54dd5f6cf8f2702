"""The command line on a partitioned namespace."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import TypeAlias

import pytest

from aioqless import NewJob
from aioqless.contrib.partitions import PartitionedClient
from tests.server import free_port

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(redis_url: str, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("AIOQLESS_NAMESPACE", namespace)
    monkeypatch.setenv("AIOQLESS_URL", redis_url)

    def run_command(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "aioqless", *args]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    return run_command


async def test_reading_commands_show_all_partitions(
    partitioned: PartitionedClient, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    jids = await partitioned.put_many([NewJob("Greet") for _ in range(20)], queue="mail")
    (queue,) = json.loads(run("queues", "--partitions", "4", "--json").stdout)
    assert (queue["name"], queue["waiting"]) == ("mail", 20)
    monkeypatch.setenv("AIOQLESS_PARTITIONS", "4")
    assert json.loads(run("get", jids[3], "--json").stdout)["jid"] == jids[3]


async def test_partitions_shows_distribution_size_and_load(
    partitioned: PartitionedClient, run: Run, namespace: str
) -> None:
    await partitioned.put_many([NewJob("Greet") for _ in range(20)], queue="mail")
    found = json.loads(run("partitions", "--partitions", "4", "--json").stdout)
    assert [each["namespace"] for each in found["partitions"]] == [
        each.namespace for each in partitioned.partitions
    ]
    (node,) = found["nodes"]
    assert (node["partitions"], node["waiting"]) == ([0, 1, 2, 3], 20)
    assert node["server"]["memory"] > 0
    assert "4 partitions on 1 node" in run("partitions", "--partitions", "4").stdout
    assert f"{namespace}{{0." in run("partitions", "--each", "--partitions", "4").stdout


async def test_missing_and_wrong_number_of_partitions_are_refused(
    partitioned: PartitionedClient, run: Run
) -> None:
    missing = run("partitions", "--namespace", f"{partitioned.namespace}-new")
    wrong = run("queues", "--partitions", "5")
    assert "say how many partitions the namespace has: --partitions" in missing.stderr
    assert "has 4 partitions in Redis, not 5" in wrong.stderr
    assert (missing.returncode, wrong.returncode) == (1, 1)


@pytest.mark.parametrize("command", [("worker", "tests.contrib.partitions.handlers"), ("queues",)])
def test_command_without_the_number_of_partitions_is_refused(
    partitioned: PartitionedClient, run: Run, namespace: str, command: tuple[str, ...]
) -> None:
    missing = run(*command)
    assert missing.stderr.splitlines()[-1] == (
        f"aioqless: namespace {namespace!r} has 4 partitions: give their number by --partitions 4, "
        "or set AIOQLESS_PARTITIONS=4"
    )
    assert missing.returncode == 1
    first = partitioned.partitions[0].namespace
    assert run("queues", "--namespace", first).returncode == 0


async def test_recurring_jobs_of_all_partitions_are_listed_and_changed(
    partitioned: PartitionedClient, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("nightly", "weekly"):
        await partitioned.queue("mail").recur("Greet", every=60, jid=name)
    assert len(json.loads(run("recur", "--partitions", "4", "--json").stdout)) == 2
    monkeypatch.setenv("AIOQLESS_PARTITIONS", "4")
    assert "{weekly}" in run("recur").stdout
    assert run("recur", "pause", "nightly").returncode == 0
    job = await partitioned.recurring.get("nightly")
    assert job is not None
    assert job.paused


async def test_list_names_a_partition_by_its_namespace(
    partitioned: PartitionedClient, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIOQLESS_PARTITIONS", "4")
    jid = await partitioned.put("Greet", queue="mail")
    home = partitioned.partitions[partitioned.partition_of(jid)]
    refused = run("jobs", "queue:mail")
    assert refused.stderr == (
        "aioqless: find works on one partition at a time: call it on client.partitions[n], or name "
        "one by --namespace, as `aioqless partitions --each` lists them\n"
    )
    assert refused.returncode == 1
    assert jid in run("jobs", "queue:mail", "--namespace", home.namespace).stdout


def test_option_of_recur_before_a_command_is_refused(run: Run) -> None:
    refused = run("recur", "--partitions", "4", "pause", "nightly")
    assert "--partitions goes after pause: recur pause --partitions" in refused.stderr
    assert refused.returncode == 2


@pytest.mark.parametrize(
    "command", [("lua", "put"), ("lake", "put", "rows.csv"), ("web", "--port", "0")]
)
def test_command_that_would_use_the_namespace_without_its_partitions_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("AIOQLESS_PARTITIONS", "4")
    refused = run(*command)
    assert "this works on one partition at a time: name one by --namespace" in refused.stderr
    assert refused.returncode == 1


@pytest.mark.parametrize("command", [("worker", "tests.contrib.partitions.handlers"), ("queues",)])
def test_partitions_of_which_no_node_can_be_reached_end_with_exit_code_3(
    run: Run, command: tuple[str, ...]
) -> None:
    url = f"redis://127.0.0.1:{free_port()}"
    refused = run(*command, "--partitions", "4", "--url", url)
    assert refused.stderr.startswith(f"aioqless: can't connect to Redis at {url}: ")
    assert refused.stderr.count("\n") == 1
    assert refused.returncode == 3
