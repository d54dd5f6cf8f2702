"""Short commands: put, get, queues, workers, failed, retry, check, lua."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from aioqless import Client, Fair, Job, Key, NewJob, Settings, Worker, job
from aioqless.cli import watch
from aioqless.contrib.dashboard import audit_log
from aioqless.contrib.http import Identity, Role
from tests.cli.conftest import Aioqless
from tests.conftest import Until
from tests.reported_runs import report_runs


async def test_put_prints_the_jid(client: Client, aioqless: Aioqless) -> None:
    await client.queue("first").put("Greet", jid="other")
    (other,) = await client.queue("first").pop()
    await other.complete()
    ended = await aioqless(
        "put", "mail", "Greet", '{ "name": "Ada" }', "--jid", "a", "--delay", "600", "--priority",
        "-3", "--tag", "x", "--tag", "y",
        "--retries", "2", "--depends", "other",
    )  # fmt: skip
    assert (ended.code, ended.out) == (0, "a\n"), ended.err
    found = await client.jobs.get("a")
    assert found and (found.klass, found.raw_data, found.state) == (
        "Greet",
        '{ "name": "Ada" }',
        "scheduled",
    )
    assert (found.priority, found.tags, found.retries) == (-3, ["x", "y"], 2)


async def test_put_depends_on_unknown_jobs_only_as_done(client: Client, cli: Aioqless) -> None:
    put = ("put", "mail", "Greet", "--jid", "a", "--depends", "nobody")
    assert "nobody" in (await cli(*put)).err and await client.jobs.get("a") is None
    assert (await cli(*put, "--missing", "done")).out == "a\n"


async def test_put_with_a_module_uses_the_options_of_its_handler(
    client: Client, cli: Aioqless, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "put_options_jobs.py").write_text(
        "import aioqless\n"
        "@aioqless.job(klass='Once', priority=-3, tags=['x'], retries=2,\n"
        "              unique=aioqless.Key('one'))\n"
        "async def once(job: aioqless.Job, n: int) -> None: ...\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    once = ("put", "mail", "Once", '{"n": 1}', "--module", "put_options_jobs")
    jid = (await cli(*once, "--priority", "4")).out.strip()
    found = await client.jobs.get(jid)
    assert found and (found.priority, found.tags, found.retries) == (4, ["x"], 2)
    assert (await cli(*once)).out.strip() == jid, "its key is taken"
    for wrong, why in (
        ((*once[:3], '{"n": "two"}', *once[4:]), "Expected `int`, got `str`"),
        ((*once[:2], "Onec", *once[3:]), "did you mean 'Once'?"),
        ((*once[:-1], "nowhere"), "there is no module 'nowhere'"),
    ):
        ended = await cli(*wrong)
        assert ended.code == 1 and why in ended.err
    assert await client.queue("mail").length() == 1


async def test_put_warns_if_no_worker_serves_the_queue_or_knows_the_klass(
    client: Client, cli: Aioqless, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "PICKUP", 60)  # until then a busy machine has popped the job
    ended = await cli("put", "mial", "Greet")
    jid = ended.out.strip()
    assert (
        f"{jid}: it is waiting in mial, which no worker serves; no worker is running" in ended.err
    )

    @job(klass="Greet")
    async def greet(job: Job) -> None: ...

    async with Worker(client, greet, settings=Settings(queues=["mail"])):
        await until(client.workers.counts)
        assert "workers serve mail" in (await cli("put", "mial", "Greet")).err
        assert "no worker has a handler for Gret" in (await cli("put", "mail", "Gret")).err
        assert (await cli("put", "mail", "Greet")).err == ""


async def test_put_without_data_stores_null(client: Client, cli: Aioqless) -> None:
    ended = await cli("put", "mail", "Greet")
    found = await client.jobs.get(ended.out.strip())
    assert found and found.data is None


async def test_get_prints_json(client: Client, cli: Aioqless) -> None:
    await client.queue("mail").put("Grüße", {"name": "Ada", "number": 12345678901234567}, jid="a")
    ended = await cli("get", "a", "--json")
    shown = json.loads(ended.out)
    assert (ended.code, shown["jid"], shown["klass"], shown["state"]) == (
        0,
        "a",
        "Grüße",
        "waiting",
    )
    assert shown["data"] == {"name": "Ada", "number": 12345678901234567}


COUNTS = ("name", "waiting", "running", "stalled", "scheduled", "depends", "recurring", "paused")


async def test_queues_prints_counts(client: Client, cli: Aioqless) -> None:
    await client.queue("mail").put("Greet")
    await client.queue("billing").put("Greet", delay=600)
    lines = (await cli("queues")).out.splitlines()
    assert [line.split() for line in lines] == [
        [*COUNTS, "workers"],
        ["mail", "1", "0", "0", "0", "0", "0", "-", "0"],
        ["billing", "0", "0", "0", "1", "0", "0", "-", "0"],
    ]


async def test_one_queue_is_shown_with_why_its_jobs_wait(client: Client, cli: Aioqless) -> None:
    await client.queue("mail").put("Greet")
    await client.internals.store.beat(worker="ann", process="{}", queues=["mial", "post"])
    shown = await cli("queues", "mail")
    assert shown.err == "1 job waits in mail, which no worker serves; did you mean mial?\n"
    await client.queue("mail").pause()
    assert (await cli("queues", "mail")).err == "1 job waits in mail: the queue is paused\n"


async def test_shares_of_a_queue_name_the_tenant_that_floods_it(
    client: Client, cli: Aioqless
) -> None:
    rows = [
        NewJob("Load", {"tenant": "hooli" if n % 10 else "acme", "n": n}, tags=["nightly"])
        for n in range(600)
    ]
    await client.put_many(rows, queue="imports")
    shown = await cli("queues", "imports", "--shares")
    lines = [line.split() for line in shown.out.splitlines()]
    assert ["100%", "~600", "klass", "Load"] in lines and [
        "90%",
        "~540",
        "data",
        "tenant=hooli",
    ] in lines
    assert ["100%", "~600", "tag", "nightly"] in lines
    found = json.loads((await cli("queues", "imports", "--shares", "--json")).out)
    assert (found["state"], found["total"], found["sampled"]) == ("waiting", 600, 500)
    assert found["data"] == {"tenant=hooli": 450, "tenant=acme": 50}
    assert (await cli("queues", "--shares")).code == 2
    assert "did you mean imports?" in (await cli("queues", "import", "--shares")).err


@pytest.mark.parametrize("command", ["queues", "check"])
async def test_queues_without_workers_and_workers_without_jobs_are_reported(
    client: Client, cli: Aioqless, command: str
) -> None:
    await client.queue("mial").put("Greet")
    await client.internals.store.beat(worker="ann", process="{}", queues=["mail", "post-*"])
    ended = await cli(command)
    assert ended.code == 0
    assert ended.err.splitlines()[:2] == [
        "1 job waits in mial, which no worker serves; did you mean mail?",
        "a worker serves mail, into which no job was put; did you mean mial?",
    ]
    (shown,) = json.loads((await cli("queues", "--json")).out)
    assert (shown["name"], shown["waiting"], shown["workers"]) == ("mial", 1, 0)


async def test_queue_is_printed_with_the_jobs_of_each_tenant(client: Client, cli: Aioqless) -> None:
    await client.queue("mail").put("Greet")
    assert len((await cli("queues", "mail")).out.splitlines()) == 2  # no tenants
    assert json.loads((await cli("queues", "mail", "--json")).out)["tenants"] == []
    await client.queue("mail").put("Greet", fair=Fair(Key("acme")))
    shown = json.loads((await cli("queues", "mail", "--json")).out)
    assert (shown["name"], shown["waiting"]) == ("mail", 2)
    (tenant,) = shown["tenants"]
    assert (tenant["key"], tenant["waiting"], tenant["running"]) == ("acme", 1, 0)
    *_, header, line = (await cli("queues", "mail")).out.splitlines()
    assert header.split() == ["tenant", "priority", "waiting", "running", "lag"]
    assert line.split()[:4] == ["acme", "0", "1", "0"]
    assert "did you mean mail?" in (misspelt := await cli("queues", "mial")).err
    assert (misspelt.code, misspelt.out) == (1, "")


async def test_queues_prints_a_few_of_many_gaps(client: Client, cli: Aioqless) -> None:
    for number in range(8):
        await client.queue(f"q{number}").put_many([NewJob("Greet", None)] * (number + 1))
    ended = await cli("queues")
    lines = ended.err.splitlines()
    assert lines[0] == "8 jobs wait in q7, which no worker serves" and len(lines) == 6
    assert lines[5].startswith("3 more queues")


async def test_workers_prints_held_jobs(client: Client, cli: Aioqless) -> None:
    await client.queue("mail").put("Greet")
    await client.queue("mail").pop(worker="ann")
    header, ann = (await cli("workers")).out.splitlines()
    assert header.split() == [
        *("name", "queues", "jobs", "stalled", "slots", "memory", "up", "version", "last", "seen"),
        "doing",
    ]
    assert re.fullmatch(r"ann +- +1 +0( +-){4} +\S+ m?s ago +Greet in mail *", ann)


async def test_workers_prints_the_queues_that_each_serves(client: Client, cli: Aioqless) -> None:
    await client.internals.store.beat(worker="ann", process="{}", queues=["mail", "post-*"])
    assert re.match(r"ann +mail post-\* +0 +0 ", (await cli("workers")).out.splitlines()[1])
    (shown,) = json.loads((await cli("workers", "--json")).out)
    assert shown["queues"] == ["mail", "post-*"]
    assert json.loads((await cli("workers", "ann", "--json")).out)["queues"] == ["mail", "post-*"]


@pytest.mark.parametrize("words", [[], ["mail", "--worker", "ann"]])
@pytest.mark.parametrize("command", ["pause", "resume"])
async def test_pause_takes_queues_or_one_worker(
    cli: Aioqless, command: str, words: list[str]
) -> None:
    ended = await cli(command, *words)
    assert ended.code == 2 and "name queues, or one worker with --worker" in ended.err


async def test_failed_lists_groups_and_the_jobs_of_one(client: Client, cli: Aioqless) -> None:
    for jid in "ab":
        await client.queue("mail").put("Greet", {"jid": jid}, jid=jid)
        (running,) = await client.queue("mail").pop()
        await running.fail(f"no such word: {jid}", group="typo")
    heading, row, *_ = (await cli("failed")).out.splitlines()
    columns = ["failed", "last", "hour", "hour", "before", "error", "groups", "latest", "message"]
    assert heading.split() == columns
    assert row.split()[:5] == ["2", "2", "0", "typo", "typo"] and "no such word: b" in row
    shown = (await cli("failed", "typo")).out
    assert "a  Greet" in shown and "no such word: a" in shown and shown.endswith("2 of 2 jobs\n")


async def test_failed_counts_an_error_across_queues_since_the_deploy_rising_first(
    redis_url: str, client: Client, cli: Aioqless
) -> None:
    async def fail(of: Client, queue: str, error: str) -> None:
        await of.queue(queue).put("shop.render")
        (running,) = await of.queue(queue).pop()
        await running.fail(f"{error}: no", group=f"{queue}-{error}")

    begun = time.time() - 4000
    async with Client(redis_url, namespace=client.namespace, clock=lambda: begun) as earlier:
        for _ in range(3):
            await fail(earlier, "mail", "OSError")
    for number, version in enumerate(("v1", "v2")):
        at = time.time() - 3000 + number
        await report_runs(client, at, worker=version, version=version, started=at)
    for queue in ("mail", "mail-low"):
        await fail(client, queue, "KeyError")
    heading, first, second, *_ = (await cli("failed")).out.splitlines()
    assert heading.split()[5:7] == ["since", "v2"]
    assert first.split()[:5] == ["2", "2", "0", "2", "KeyError"]
    assert "mail-KeyError, mail-low-KeyError" in first
    assert second.split()[:5] == ["3", "0", "3", "0", "OSError"]
    found, old = json.loads((await cli("failed", "--json")).out)
    assert (found["error"], found["failed"], found["last_hour"]) == ("KeyError", 2, 2)
    assert found["groups"] == {"mail-KeyError": 1, "mail-low-KeyError": 1}
    assert (found["queues"], found["klasses"]) == (["mail", "mail-low"], ["shop.render"])
    assert (found["deploy"]["version"], found["deploy"]["since"]) == ("v2", 2)
    assert (old["error"], old["hour_before"], old["deploy"]["since"]) == ("OSError", 3, 0)
    ended = await cli("failed", "KeyError")
    assert ended.code == 1
    assert "it is the error of the groups mail-KeyError, mail-low-KeyError" in ended.err


async def test_check_finds_and_resolves_problems(client: Client, cli: Aioqless) -> None:
    await client.queue("mail").put("Greet", jid="a")
    sound = await cli("check")
    unserved = "1 job waits in mail, which no worker serves\n"
    assert (sound.code, sound.out, sound.err) == (0, "", f"{unserved}0 problems\n")
    await client.redis.zrem(f"{client.namespace}:q:mail-work", "a")
    found = await cli("check", "--json")
    assert (found.code, json.loads(found.out)["problem"], found.err) == (
        1,
        "nowhere",
        "1 problem, 0 fixed\n",
    )
    fixed = await cli("check", "--resolve")
    assert (fixed.code, fixed.err) == (0, f"{unserved}1 problem, 1 fixed\n")
    assert await client.queue("mail").jids("waiting") == ["a"]


async def test_what_other_clients_leave_by_design_is_no_problem_of_a_check(
    client: Client, cli: Aioqless
) -> None:
    await client.queue("mail").put("Greet", jid="a", unique=Key("k"))
    job_key, queue = f"{client.namespace}:j:a", f"{client.namespace}:q:mail"
    await client.redis.delete(job_key, f"{job_key}-history")  # as if another client ended it
    await client.redis.zrem(f"{queue}-work", "a")
    found = await cli("check")
    assert found.code == 0 and "unique-without-job" in found.out
    assert "0 problems\n1 entry that other qless clients leave by design" in found.err
    assert json.loads((await cli("check", "--json")).out)["left_by_others"] is True
    assert (await cli("check", "--resolve")).code == 0
    assert (await cli("check")).out == ""


async def test_lua_prints_a_callable_script(client: Client, cli: Aioqless) -> None:
    await client.queue("mail").put("Greet", jid="a")
    ended = await cli("lua", "get")
    assert json.loads(await client.redis.eval(ended.out.removesuffix("\n"), 0, "a"))["jid"] == "a"


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["put", "mail", "Greet", "{nonsense"], 2, "is not JSON"),
        (["put", "mail", "Greet", "false"], 1, "data must not be false"),
        (["put", "", "Greet"], 2, "queue must not be empty"),
        (["put", "mail", ""], 2, "klass must not be empty"),
        (["put", "mail", "Greet", "--priority", "1e12"], 2, "priority"),
        (["put", "mail", "Greet", "--delay", "soon"], 2, "Invalid value"),
        (["get", "nobody"], 1, "there is no job 'nobody'"),
        (["lua", "fly"], 1, "there is no command 'fly'; there are agenda"),
        (["fly"], 2, "No such command"),
        (["app.jobs"], 2, "'app.jobs' is no command; to run its jobs: aioqless worker app.jobs"),
        (
            ["get", "a", "--url", "redis://127.0.0.1:1"],
            3,
            "can't connect to Redis at redis://127.0.0.1:1",
        ),
        (["get", "a", "--url", "nonsense"], 2, "the URL of Redis must begin with redis://"),
    ],
)
async def test_refusal_is_one_line_with_a_reason(
    cli: Aioqless, arguments: list[str], code: int, why: str
) -> None:
    ended = await cli(*arguments)
    assert (ended.code, ended.out) == (code, "")
    assert why in " ".join(ended.err.split()) and "Traceback" not in ended.err
    assert code == 2 or (ended.err.startswith("aioqless: ") and ended.err.count("\n") == 1), (
        ended.err
    )


def test_unwritable_output_is_an_error_with_a_reason(
    folder: Path, environment: dict[str, str]
) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "aioqless", "lua", "get"]
        ended = subprocess.run(
            command, cwd=folder, env=environment, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (ended.returncode, ended.stderr) == (
        1,
        b"aioqless: the output can't be written: No space left on device\n",
    )


async def test_invalid_namespace_is_refused(cli: Aioqless) -> None:
    ended = await cli("queues", "--namespace", "a:b", in_namespace=False)
    assert ended.code == 2 and ended.err.startswith(
        "aioqless: namespace 'a:b' must be a printable name"
    )


async def test_audit_log_prints_actions_and_sign_ins(client: Client, cli: Aioqless) -> None:
    assert (await cli("audit-log")).out == "Nothing is recorded.\n"
    ada = Identity("ada", Role.ADMIN)
    start = await audit_log.record(client, ada, "clear", {"queue": "[b]"}, "started: 3 jobs")
    shown = (await cli("audit-log")).out
    assert "Clear queue" in shown and "Queue: [b]" in shown and "3 jobs, unfinished" in shown
    end = {"queue": "mail", "begun": start}
    await audit_log.record(client, ada, "clear (end)", end, "3 of 3 jobs")
    (entry,) = json.loads((await cli("audit-log", "--json")).out)
    assert (entry["act"], entry["about"], entry["outcome"]) == (
        *("clear", {"queue": "mail"}, "3 of 3 jobs"),
    )
    assert entry["started"] <= entry["when"]
    await audit_log.record_login(client, "ada", "log-in", "10.0.0.1", "done")
    assert "Address: 10.0.0.1" in (await cli("audit-log", "--logins")).out


async def test_common_options_may_stand_before_the_command(client: Client, cli: Aioqless) -> None:
    where = ["--json", "--url", client.url, f"--namespace={client.namespace}"]
    await cli(*where[1:], "put", "mail", "Greet", "--jid", "a", "--", "null", in_namespace=False)
    shown = await cli(*where, "get", "a", in_namespace=False)
    assert shown.code == 0 and json.loads(shown.out)["klass"] == "Greet"


@pytest.mark.parametrize("arguments", [(), ("failed",), ("recur", "put")])
async def test_short_help_option_prints_help(cli: Aioqless, arguments: tuple[str, ...]) -> None:
    shown = await cli(*arguments, "-h", in_namespace=False)
    long = await cli(*arguments, "--help", in_namespace=False)
    assert shown.code == 0 and shown.out == long.out != ""


async def test_output_in_ascii_escapes_what_it_cannot_encode(
    client: Client, aioqless: Aioqless, environment: dict[str, str]
) -> None:
    environment["PYTHONIOENCODING"] = "ascii"
    await client.queue("é").put("Greet")
    table, shown = [await aioqless("queues", *more) for more in ((), ("--json",))]
    assert table.code == 0 and r"\xe9" in table.out
    assert shown.out.isascii() and [each["name"] for each in json.loads(shown.out)] == ["é"]
