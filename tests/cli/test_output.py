"""Output of commands, for people and for programs; shell completion and help."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from aioqless import Client, Limit
from aioqless.cli.presentation.formatting import format_duration, format_relative_time, shorten
from aioqless.cli.presentation.histograms import (
    COUNTER_STARTS,
    draw_bar,
    draw_sparkline,
    label_bars,
    merge_counters,
)
from aioqless.cli.presentation.prompts import show_progress
from aioqless.client.run_buckets import RUN_BUCKETS, WAITS, bucket_of
from aioqless.contrib import private_redis
from aioqless.validation import plain
from tests.cli.conftest import Aioqless
from tests.cli.terminal import terminal
from tests.reported_runs import report_runs

MAIN = [sys.executable, "-c", "from aioqless.cli.main import main; main()"]


async def test_stats_prints_histograms_and_numbers(client: Client, cli: Aioqless) -> None:
    mail = client.queue("mail")
    for jid in "abc":
        await mail.put("Greet", jid=jid)
    (a, b, c) = await mail.pop(3)
    await a.complete()
    await b.complete()
    await c.fail("x", group="typo")
    await client.queue("retried").put("Greet")
    for _ in range(2):
        (job,) = await client.queue("retried").pop()
        await job.retry()
    assert "2 retries (2 explicit, 0 locks lost)" in (await cli("stats", "retried")).out
    out = (await cli("stats", "mail")).out
    assert (
        "1 failure, of which 1 unresolved; 0 retries" in out
        and "3 jobs  mean" in out
        and "2 jobs  mean" in out
    )
    assert (
        sum(int(line.split()[-1]) for line in out.splitlines() if "█" in line) == 3 + 2
    )  # the number of bars depends on the times
    told = json.loads((await cli("stats", "mail", "--json")).out)
    assert (
        told["queue"],
        told["failures"],
        told["wait"]["count"],
        told["wait"]["histogram"][0],
    ) == ("mail", 1, 3, 3)
    assert len(told["run"]["histogram"]) == len(COUNTER_STARTS) == 148
    (row,) = [line for line in (await cli("stats")).out.splitlines() if line.startswith("mail")]
    assert row.split()[1] == "3"
    (row,) = [line for line in (await cli("stats")).out.splitlines() if line.startswith("retried")]
    assert row.split()[-2:] == ["0", "2"]
    assert (
        json.loads((await cli("stats", "mail", "--date", "2001-02-03", "--json")).out)["day"]
        == "2001-02-03"
    )
    assert (await cli("stats", "mail", "--date", "yesterday")).code == 2


async def test_times_below_a_second_are_shown_in_milliseconds(
    client: Client, cli: Aioqless, redis_url: str
) -> None:
    now = [int(time.time()) + 0.5]
    async with Client(redis_url, namespace=client.namespace, clock=lambda: now[0]) as timed:
        jid = await timed.queue("fast").put("Greet")
        now[0] += 0.3
        (job,) = await timed.queue("fast").pop()
        now[0] += 0.042
        await job.complete()
    out = (await cli("get", jid)).out
    assert "+300 ms" in out and "+42 ms" in out
    out = (await cli("stats", "fast")).out
    assert "mean 300 ms" in out and "mean 42 ms" in out
    assert out.count("< 1 s ") == 2  # no worker has measured them
    values = [0, 0, 420, 3000, bucket_of(0.042, RUN_BUCKETS), 1, WAITS + bucket_of(0.3, 1), 1]
    await report_runs(client, time.time(), [("fast", "Greet", values)])
    out = (await cli("stats", "fast")).out
    wait, run = re.findall(r"p50 (\d+) ms  p95 \d+ ms  p99 \d+ ms", out)
    assert 250 <= int(wait) <= 500 and 30 <= int(run) <= 50
    assert "< 500 ms █" in out and "< 50 ms █" in out and "< 1 s" not in out
    runs = json.loads((await cli("stats", "fast", "--json")).out)["runs"]
    assert runs["runs"] == 1 and 0.03 < runs["run"]["p50"] < 0.05
    day = ["--date", "2001-02-03", "--json"]
    assert json.loads((await cli("stats", "fast", *day)).out)["runs"]["runs"] == 0


async def test_get_explains_a_rate_limited_job(client: Client, cli: Aioqless) -> None:
    for jid in ("first", "second"):
        await client.queue("mail").put("Greet", jid=jid, limits=[Limit("api", max_concurrency=1)])
    (running,) = await client.queue("mail").pop(count=2)
    held = ({"first", "second"} - {running.jid}).pop()
    out = (await cli("get", held)).out
    assert (
        "limit of key api: 1 of 1 at a time run" in out
        and f"one of these ends: {running.jid}; looked at again" in out
    )
    told = json.loads((await cli("get", held, "--json")).out)["held_back"]
    assert told["limit"] == 1 and told["running"] == [running.jid] and told["until"] > time.time()
    assert json.loads((await cli("get", running.jid, "--json")).out)["held_back"] is None


def test_histogram_merges_the_counters_of_qless() -> None:
    counts = [0] * 148
    counts[0], counts[3], counts[60], counts[147] = 90, 5, 4, 1  # below 1 s, 3 s, a minute, 6 days
    assert [(label, count) for label, count in label_bars(merge_counters(counts)) if count] == [
        ("< 1 s", 90),
        ("< 5 s", 5),
        ("< 2 min", 4),
        ("≥ 2 d", 1),
    ]
    assert (
        draw_bar(0, 10, 8),
        draw_bar(10, 10, 8),
        draw_bar(1, 1000, 8),
        draw_sparkline([0, 1, 2]),
    ) == (
        "",
        "█" * 8,
        "▏",
        "▁▄█",
    )


async def test_json_does_not_control_a_terminal_and_has_the_same_value(
    client: Client, cli: Aioqless
) -> None:
    text = "\x1b[31m \x9b31m \x85 \u202e\u200b\u2028 \U000e0001 Gr\u00fc\u00dfe \u4f60"
    jid = await client.queue("mail").put("Greet", {"text": text}, tags=["\x9b\u202e"])
    lines = [(await cli("get", jid, "--json")).out, (await cli("jobs", "--json")).out]
    for out in lines:
        assert out.replace("\n", "").isprintable() and "Gr\u00fc\u00dfe \u4f60" in out
    assert json.loads(lines[0])["data"]["text"] == text


async def test_names_that_are_not_utf8_are_printed_as_json(client: Client, cli: Aioqless) -> None:
    name = "bad\udcff"
    jid = await client.queue(name).put(name, {"n": 1}, tags=["x"])
    raw = b'{"to":"\xff"}'
    await client.redis.hset(f"{client.namespace}:j:{jid}", mapping={"data": raw})
    told = json.loads((await cli("get", jid, "--json")).out)
    assert (told["queue"], told["klass"], told["data"]) == (name, name, '{"to":"\\udcff"}')
    for words in (("jobs",), ("queues",), ("stats",), ("stats", name)):
        ended = await cli(*words, "--json")
        assert ended.code == 0 and "bad\\udcff" in ended.out, ended
        assert json.loads(ended.out)


DURATIONS = {
    0.0003: "0.3 ms",
    0.002: "2 ms",
    0.0123: "12 ms",
    1: "1 s",
    9.96: "10 s",
    59.6: "1 min",
    3599.7: "1 h",
    250: "4 min 10 s",
    1051200: "12 d 4 h",
    -5: "-5 s",
}


@pytest.mark.parametrize(("seconds", "words"), DURATIONS.items())
def test_durations_have_at_most_two_units(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


def test_texts_are_escaped_and_shortened() -> None:
    assert (
        plain("a\x1b[2J\u202eb\n") == "a\\x1b[2J\\u202eb\\n"
        and plain("ä\n\tb", lines=True) == "ä\n\tb"
    )
    assert (
        shorten("a  \n b") == "a b"
        and shorten("x" * 100, 10) == "x" * 9 + "…"
        and format_relative_time(50, now=60) == "10 s ago"
        and format_relative_time(65, now=60) == "in 5 s"
    )


async def test_config_shows_sets_and_unsets_options(client: Client, cli: Aioqless) -> None:
    assert (
        await cli("config", "heartbeat", "30", "--dry-run")
    ).out == "heartbeat: 60 → 30 (not done)\n"
    assert (await cli("config", "heartbeat", "30")).out == "heartbeat: 60 → 30\n"
    assert json.loads((await cli("config", "heartbeat", "--json")).out) == "30"
    assert json.loads((await cli("config", "--json")).out)["heartbeat"] == "30"
    assert (await cli("config", "heartbeat", "--unset")).out == "heartbeat: 30 → 60\n"
    assert (await cli("config", "grace-period", "soon")).code == 2
    assert (await cli("config", "--unset")).code == 2


async def test_pause_takes_several_queues(client: Client, cli: Aioqless) -> None:
    await client.queue("mail").put("Greet")
    await client.queue("post").put("Greet")
    assert (await cli("pause", "mail", "post")).out == "mail paused\npost paused\n"
    assert (await client.queue("mail").counts()).paused
    assert (await cli("resume", "mail")).out == "mail resumed\n"


async def test_workers_shows_the_jobs_of_one(client: Client, cli: Aioqless) -> None:
    await client.queue("mail").put("Greet", jid="a")
    await client.queue("mail").pop(worker="ann")
    assert (await cli("workers", "ann")).out.splitlines()[1].split()[:4] == [
        "a",
        "Greet",
        "mail",
        "running",
    ]
    told = json.loads((await cli("workers", "ann", "--json")).out)
    assert (told["jobs"], told["doing"][0]["jid"]) == (["a"], "a") and 0 <= time.time() - told[
        "seen"
    ] < 60
    (told,) = json.loads((await cli("workers", "--json")).out)
    assert (told["name"], told["jobs"], told["stalled"]) == (
        "ann",
        1,
        0,
    ) and 0 <= time.time() - told["seen"] < 60
    (doing,) = told["doing"]
    assert (doing["jid"], doing["klass"], doing["queue"]) == ("a", "Greet", "mail") and doing[
        "expires"
    ] > time.time()


async def test_check_counts_problems_by_kind(client: Client, cli: Aioqless) -> None:
    for jid in "abc":
        await client.queue("mail").put("Greet", jid=jid)
        await client.redis.zrem(f"{client.namespace}:q:mail-work", jid)
    found = await cli("check")
    assert (found.code, found.out.splitlines()[1].split()[:3]) == (1, ["nowhere", "3", "0"])
    assert (
        found.err
        == "3 problems, 0 fixed\naioqless check --resolve fixes them without losing a job\n"
    )


async def test_check_warns_of_an_unread_archive(client: Client, cli: Aioqless) -> None:
    await client.redis.xadd(f"{client.namespace}:x:archive", {"v": "1"}, id="1000-0")  # long ago
    found = await cli("check")
    assert found.code == 0 and "the archive: ended jobs have waited for" in found.err


async def test_tail_prints_json_lines(client: Client, cli: Aioqless) -> None:
    async def busy() -> None:
        while True:
            await client.queue("post").put("Greet")
            await client.queue("mail").put("Greet", jid="a")
            await asyncio.sleep(0.02)

    business = asyncio.create_task(busy())
    ended = await cli("tail", "-q", "mail", "--json", "--count", "2")
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert [(line["kind"], line["jid"], line["queue"]) for line in lines] == [
        ("put", "a", "mail")
    ] * 2
    assert abs(lines[0]["when"] - time.time()) < 10
    text = (await cli("tail", "--kind", "put", "--jid", "a", "--count", "1")).out
    business.cancel()
    assert "put" in text and "a  queue=mail" in text
    assert (await cli("tail", "--kind", "putt")).err.startswith(
        "aioqless: kind must be one of put,"
    )


async def test_redis_shows_and_stops_the_private_server(cli: Aioqless, tmp_path: Path) -> None:
    home = ["--data", str(tmp_path / "home")]
    assert (await cli("redis", *home, in_namespace=False)).code == 1
    assert (await cli("redis", "--force", *home, in_namespace=False)).code == 2
    await asyncio.to_thread(private_redis.ensure, tmp_path / "home")
    started = await cli("redis", *home, in_namespace=False)
    assert "redis.sock" in started.out and started.code == 0
    shown = json.loads((await cli("redis", "--json", *home, in_namespace=False)).out)
    assert shown["running"] and shown["url"].startswith("unix://")
    assert (await cli("redis", "--stop", "--force", *home, in_namespace=False)).out == "stopped\n"
    assert (await cli("redis", "--stop", *home, in_namespace=False)).out == "it wasn't running\n"


OFFERED = {
    "que": ["queues"],
    "pause m": ["mail"],
    "retry --group ": ["typo"],
    "get ": ["a"],
    "put mail G --jid x --de": ["--delay", "--depends"],
}


Complete: TypeAlias = Callable[[dict[str, str]], Awaitable[str]]


@pytest.fixture
def complete(cli: Aioqless, client: Client, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """Return what runs the command as a shell's completion script does, and returns its output."""
    # A user would not wait as long as a busy machine may take to answer.
    monkeypatch.setattr("aioqless.cli.completion.TIMEOUT", 60.0)
    monkeypatch.setenv("AIOQLESS_NAMESPACE", client.namespace)

    async def complete(variables: dict[str, str]) -> str:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return (await cli(in_namespace=False)).out

    return complete


@pytest.mark.parametrize(("words", "offered"), OFFERED.items())
async def test_bash_completes_commands_options_and_names(
    client: Client, complete: Complete, words: str, offered: list[str]
) -> None:
    await client.queue("mail").put("Greet", jid="a")
    (job,) = await client.queue("mail").pop()
    await job.fail("x", group="typo")
    out = await complete(
        {
            "_AIOQLESS_COMPLETE": "complete_bash",
            "COMP_WORDS": f"aioqless {words}",
            "COMP_CWORD": str(words.count(" ") + 1),
        }
    )
    assert out.split() == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
async def test_other_shells_complete_the_same_words(
    client: Client, complete: Complete, shell: str
) -> None:
    for name in ("mail", "main street", "post"):
        await client.queue(name).put("Greet")
    out = await complete(
        {
            "_AIOQLESS_COMPLETE": f"complete_{shell}",
            "_TYPER_COMPLETE_ARGS": "aioqless pause ma",
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
    )
    assert (
        out.split("\n")
        == {
            "zsh": ['_arguments \'*: :(("mail"', '"main street"))\'', ""],
            "fish": ["mail", "main street", ""],
        }[shell]
    )


@pytest.mark.long
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_of_each_shell_is_valid(shell: str, environment: dict[str, str]) -> None:
    asked = {"_AIOQLESS_COMPLETE": f"source_{shell}"}
    script = subprocess.run(
        MAIN, env={**environment, **asked}, capture_output=True, text=True, check=True
    ).stdout
    assert "_AIOQLESS_COMPLETE" in script and "aioqless" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_long_operations_show_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("aioqless.cli.presentation.prompts.SHOW_AFTER", -1)
    with show_progress("retrying", 10) as step:
        step(4)
    assert "retrying" in capsys.readouterr().err
    monkeypatch.setattr("aioqless.cli.presentation.prompts.SHOW_AFTER", 60)
    with show_progress("retrying", 10) as step:
        step(4)
    assert capsys.readouterr().err == ""


def test_output_has_no_colors_with_no_color_or_in_pipes(
    environment: dict[str, str], namespace: str
) -> None:
    command = [sys.executable, "-m", "aioqless", "queues", "--namespace", namespace]
    ended = subprocess.run(
        command, env={**environment, "NO_COLOR": "1"}, capture_output=True, text=True, check=True
    )
    assert ended.stdout == "No queues yet: the first put makes one.\n" and os.linesep == "\n"


async def test_terminal_output_shortens_data_and_keeps_jids_whole(
    client: Client, cli: Aioqless, environment: dict[str, str], tmp_path: Path
) -> None:
    jid = await client.queue("mail").put("shop.mail.send_receipt", {"blob": "x" * 100_000})
    given = {"environment": environment, "folder": tmp_path, "size": (80, 24)}
    async with terminal("get", jid, "--namespace", client.namespace, **given) as screen:  # type: ignore[arg-type]
        await screen.shows("more characters: aioqless get", "put        queue mail")
    async with terminal("jobs", "queue:mail", "--namespace", client.namespace, **given) as screen:  # type: ignore[arg-type]
        await screen.shows(f"{jid}  shop.")
    assert "x" * 100_000 in (await cli("get", jid)).out
