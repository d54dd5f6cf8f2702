"""Commands on jobs: show, list, change, retry and delete."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from aioqless import Client
from aioqless.contrib.durable.generated_commands import DurableCommands
from tests.cli.conftest import Aioqless


async def failing(client: Client, *jids: str, queue: str = "mail", group: str = "typo") -> None:
    for jid in jids:
        await client.queue(queue).put("Greet", {"to": jid}, jid=jid, tags=["news"])
        (job,) = await client.queue(queue).pop(worker="ann")
        await job.fail(f"Traceback:\n  a line\nValueError: no such word: {jid}", group=group)


async def states(client: Client, *jids: str) -> dict[str, str]:
    return {job.jid: f"{job.state} {job.queue}" for job in await client.jobs.multiget(*jids)}


async def test_get_shows_failure_data_history_and_dependents(client: Client, cli: Aioqless) -> None:
    await failing(client, "a")
    await client.queue("post").put("Report", jid="b", depends=["a"])
    out = (await cli("get", "a")).out
    for text in (
        "a  Greet  failed",
        "typo · ",
        "worker ann",
        "ValueError: no such word: a",
        '"to": "a"',
        "Awaited by",
        "b  depends",
        "tags",
        "news",
    ):
        assert text in out
    history = out[out.index("History") :].splitlines()[1:]
    assert [line.split()[2 if index == 0 else 4] for index, line in enumerate(history)] == [
        "put",
        "popped",
        "failed",
    ]
    assert "a  failed" in (await cli("get", "b")).out


async def test_control_characters_in_jobs_are_escaped(client: Client, cli: Aioqless) -> None:
    evil = "\x1b[2J\x1b]0;title\x07\u202e[bold red]x[/]"
    await client.queue("mail").put(
        f"Klass[link=x]{evil[-12:]}", {"text": evil}, jid="a", tags=["[blink]tag"]
    )
    (job,) = await client.queue("mail").pop()
    await job.fail(evil, group="[red]group")
    for command in (
        ["get", "a"],
        ["failed"],
        ["failed", "[red]group"],
        ["jobs", "group:[red]group"],
        ["jobs", "tag:[blink]tag"],
    ):
        ended = await cli(*command)
        assert ended.code == 0 and not set("\x1b\x07\u202e") & set(ended.out), command
        assert "[red]group" in ended.out or command != ["failed"]
    assert "\\x1b[2J" in (await cli("get", "a")).out


async def test_jobs_are_listed_by_a_filter(client: Client, cli: Aioqless) -> None:
    async def listed(*arguments: str) -> list[str]:
        return [job["jid"] for job in json.loads((await cli("jobs", *arguments, "--json")).out)]

    await failing(client, "f")
    for jid in "abc":
        await client.queue("mail").put("Greet", {"customer": ord(jid)}, jid=jid)
    await client.queue("mail").put("Greet", jid="later", delay=600)
    await client.queue("post").put("Greet", jid="p", tags=["news"])
    await client.queue("mail").pop()
    assert await listed() == ["a", "b", "c", "p", "later", "f"]
    assert await listed("queue:mail", "state:waiting") == ["b", "c"]
    assert await listed("--count", "2") == ["a", "b"]
    assert await listed("group:typo") == ["f"]
    assert sorted(await listed("tag:news")) == ["f", "p"]
    assert await listed("state:complete") == []
    assert await listed("customer:98") == ["b"]
    first = await client.jobs.search("state:waiting", count=1)
    assert await listed("state:waiting", "--cursor", first.cursor) == ["c", "p"]
    unknown = await cli("jobs", "stat:failed")
    assert unknown.code == 2 and "did you mean 'state'?" in unknown.err
    assert (await cli("jobs", "--cursor", "x")).code == 2


async def test_list_of_jobs_says_where_they_ran_and_on_standard_error_that_there_are_more(
    client: Client, cli: Aioqless
) -> None:
    for jid in ("a", "b"):
        await client.put("Greet", {}, queue="mail", jid=jid)
        (job,) = await client.queue("mail").pop(worker="ann")
        await job.complete()
    listed = await cli("jobs", "--count", "1")
    header, line = listed.out.splitlines()
    assert header.split() == ["jid", "klass", "state", "queue", "time", "worker", "ran", "data"]
    assert re.match(r"b +Greet +complete +mail +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +ann +", line)
    assert "--cursor " in listed.err
    (job_of_a,) = json.loads((await cli("jobs", "jid:a", "--json")).out)
    assert job_of_a["last_worker"] == "ann" and job_of_a["ran"] >= 0 and job_of_a["time"]


async def test_retry_uses_the_queue_of_the_failure_or_another(
    client: Client, cli: Aioqless
) -> None:
    await failing(client, "a", "b")
    assert (await cli("retry", "a", "--dry-run")).out == "a would be retried in mail\n"
    assert await states(client, "a") == {"a": "failed mail"}
    assert (await cli("retry", "a")).out == "a retried in mail\n"
    assert (await cli("retry", "b", "--queue", "post")).code == 0
    assert await states(client, "a", "b") == {"a": "waiting mail", "b": "waiting post"}
    again = await cli("retry", "a")
    assert (again.code, again.err) == (1, "aioqless: job 'a' has not failed: it is waiting\n")


async def test_retry_of_groups_uses_the_queue_of_each_failure(
    client: Client, cli: Aioqless
) -> None:
    await failing(client, "a", "b")
    await failing(client, "c", queue="post")
    await failing(client, "d", group="other")
    assert (
        await cli("retry", "--group", "typo", "--dry-run")
    ).out == "3 jobs of typo would be retried\n"
    assert (await cli("retry", "--group", "typo", "--count", "2")).out == "2 jobs of typo retried\n"
    assert await states(client, "a", "b", "c") == {
        "a": "waiting mail",
        "b": "waiting mail",
        "c": "failed post",
    }
    dry = await cli("retry", "--all", "--dry-run")
    assert (dry.code, dry.out) == (0, "2 failed jobs would be retried\n")
    refused = await cli("retry", "--all")
    assert refused.code == 1 and "Retry 2 failed jobs?" in refused.err
    assert "pass --yes" in refused.err and sum((await client.jobs.failed_counts()).values()) == 2
    assert (await cli("retry", "--all", "--count", "1", "-y")).out == "1 failed job retried\n"
    assert (await cli("retry", "--all", "--yes")).out == "1 failed job retried\n"
    assert await client.jobs.failed_counts() == {}
    assert (await cli("retry", "--all")).out == "Nothing has failed.\n"
    assert (await cli("retry")).code == 2


async def test_edit_changes_the_data_and_retries(client: Client, cli: Aioqless) -> None:
    await failing(client, "a")
    misplaced = await cli("edit", "a", '{"to": 1}')
    assert misplaced.code == 2 and "the new data goes behind --data" in misplaced.err
    ended = await cli("edit", "a", "--data", '{"to": 12345678901234567}')
    assert (ended.code, ended.out) == (0, "a retried in mail, with the new data\n")
    job = await client.jobs.get("a")
    assert job and (job.state, job.raw_data, job.tags) == (
        "waiting",
        '{"to": 12345678901234567}',
        ["news"],
    )
    assert (
        await cli("edit", "a", "--data", "1")
    ).err == "aioqless: job 'a' has not failed: it is waiting\n"


@pytest.mark.parametrize(
    ("script", "code", "why"),
    [
        ("p.write_text(p.read_text().replace('a', 'ada'))", 0, ""),
        ("pass", 1, "the data is unchanged"),
        ("p.write_text('{')", 1, "the text is not JSON"),
        ("raise SystemExit(3)", 1, "ended with 3: nothing was changed"),
    ],
)
async def test_edit_opens_an_editor(
    client: Client,
    cli: Aioqless,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    script: str,
    code: int,
    why: str,
) -> None:
    await failing(client, "a")
    editor = tmp_path / "editor.py"
    editor.write_text(f"import pathlib, sys\np = pathlib.Path(sys.argv[1])\n{script}\n")
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ended = await cli("edit", "a")
    assert ended.code == code and why in ended.err
    job = await client.jobs.get("a")
    assert (
        job
        and job.data == {"to": "ada" if code == 0 else "a"}
        and (job.state == "waiting") == (code == 0)
    )


async def test_edit_refuses_to_overwrite_a_concurrent_change(
    client: Client, cli: Aioqless, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await failing(client, "a")
    change = f"redis.Redis.from_url({client.url!r}).hset('{client.namespace}:j:a', 'data', '{{}}')"
    (tmp_path / "editor.py").write_text(
        f"import redis, sys\n{change}\nopen(sys.argv[1], 'w').write('[1]')\n"
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {tmp_path / 'editor.py'}")
    ended = await cli("edit", "a")
    assert ended.code == 1 and "its data has changed meanwhile" in ended.err
    job = await client.jobs.get("a")
    assert job and (job.state, job.data) == ("failed", {})


async def test_jid_prefix_finds_a_recently_failed_job(client: Client, cli: Aioqless) -> None:
    await failing(client, "4f2a01", "4f2a02", "5e11aa")
    assert "5e11aa  Greet  failed" in (await cli("get", "5e11")).out
    assert "several jobs begin with '4f2a': 4f2a0" in (await cli("get", "4f2a")).err
    assert "there is no job '5e1'" in (await cli("get", "5e1")).err
    assert (
        await cli("edit", "5e11", "--data", "7")
    ).out == "5e11aa retried in mail, with the new data\n"
    assert (await cli("retry", "4f2a01")).out == "4f2a01 retried in mail\n"
    assert (await cli("cancel", "4f2a0", "--yes")).out == "1 job deleted\n"
    assert await states(client, "4f2a01", "5e11aa") == {
        "4f2a01": "waiting mail",
        "5e11aa": "waiting mail",
    }


async def test_cancel_asks_for_confirmation(client: Client, cli: Aioqless) -> None:
    await failing(client, "a", "b")
    assert (
        await cli("cancel", "--filter", "tag:news", "--dry-run")
    ).out == "2 jobs would be deleted\n"
    refused = await cli("cancel", "a")
    assert refused.code == 1 and "pass --yes" in refused.err and await client.jobs.get("a")
    assert (await cli("cancel", "a", "-y")).out == "1 job deleted\n"
    assert (await cli("cancel", "--group", "typo", "--yes")).out == "1 job deleted\n"
    assert await client.jobs.multiget("a", "b") == []
    assert (await cli("cancel", "a", "--yes")).err == "aioqless: there is no job 'a'\n"
    await client.queue("mail").put("Greet", jid="c")
    await client.queue("mail").put("Greet", jid="d", depends=["c"])
    assert "depends on it" in (await cli("cancel", "c", "--yes")).err


async def test_cancel_counts_only_the_jobs_that_it_deletes(client: Client, cli: Aioqless) -> None:
    mail = client.queue("mail")
    await mail.put_many(_events(count) for count in range(5))
    for job in await mail.pop(count=3):
        await job.complete()
    left = ", 3 complete jobs left\n"
    dry = await cli("cancel", "--filter", "tag:news", "--dry-run")
    assert (dry.code, dry.out) == (0, f"2 jobs would be deleted{left}")
    assert "Delete 2 jobs?" in (await cli("cancel", "--filter", "tag:news")).err
    assert (await cli("cancel", "--filter", "tag:news", "--yes")).out == f"2 jobs deleted{left}"
    nothing = await cli("cancel", "--filter", "tag:news")
    assert (nothing.code, nothing.out) == (0, f"0 jobs deleted{left}")


async def test_cancel_of_many_jobs_keeps_those_with_dependents(
    client: Client, cli: Aioqless
) -> None:
    await client.queue("mail").put_many(_events(count) for count in range(450))
    await client.queue("mail").put("Greet", jid="waits", depends=["n7"])
    kept = "1 job kept, since other jobs depend on them"
    dry = await cli("cancel", "--filter", "tag:news", "--dry-run")
    assert dry.out == f"449 jobs would be deleted, {kept}\n"
    dry = await cli("cancel", "--filter", "jid:n7,n8", "--dry-run")
    assert dry.out == f"1 job would be deleted, {kept}\n"
    ended = await cli("cancel", "--filter", "tag:news", "--yes")
    assert (ended.code, ended.out) == (
        1,
        "449 jobs deleted\n",
    ) and "1 job kept, since other jobs depend on them" in ended.err
    assert sorted(job.jid for job in await client.jobs.multiget("n7", "n8", "waits")) == [
        "n7",
        "waits",
    ]


def _events(count: int) -> Any:
    from aioqless import NewJob

    return NewJob("Greet", None, jid=f"n{count}", tags=["news"])


@pytest.mark.parametrize("text", ["", " "])
@pytest.mark.parametrize(
    "act",
    [("cancel", "--yes"), ("move", "slow"), ("retry",), ("tag", "vip"), ("priority", "--to", "1")],
    ids=str,
)
async def test_empty_filter_which_would_match_all_jobs_is_refused(
    client: Client, cli: Aioqless, act: tuple[str, ...], text: str
) -> None:
    jid = await client.queue("mail").put("Greet")
    ended = await cli(*act, "--filter", text)
    assert ended.code == 2 and "would match all jobs" in ended.err
    (job,) = await client.jobs.multiget(jid)
    assert (job.queue, job.tags, job.priority) == ("mail", [], 0)


async def test_jobs_are_moved_and_retried_by_a_filter(client: Client, cli: Aioqless) -> None:
    await client.queue("mail").put_many(_events(count) for count in range(3))
    await client.queue("mail").put("Greeting", jid="other")
    (job,) = await client.queue("mail").pop()
    await job.fail("no such word", group="typo")
    dry = await cli("move", "slow", "--filter", "tag:news", "--dry-run")
    assert dry.out == "2 jobs would be moved to slow\n"
    assert (await cli("move", "slow", "--filter", "klass:Greet")).out == "2 jobs moved to slow\n"
    assert sorted(await client.queue("slow").jids("waiting")) == ["n1", "n2"]
    assert (
        await cli("retry", "--filter", "klass:Greet", "--dry-run")
    ).out == "1 job would be retried\n"
    assert (await cli("retry", "--filter", "tag:news")).out == "1 job retried\n"
    assert await client.queue("mail").jids("waiting") == ["other", "n0"]
    assert (await cli("cancel", "--filter", "klass:Greet", "--yes")).out == "3 jobs deleted\n"
    assert (await cli("move", "slow")).code == 2


async def test_jobs_of_a_filter_are_tagged_and_get_a_priority(
    client: Client, cli: Aioqless
) -> None:
    await client.queue("mail").put_many(_events(count) for count in range(3))
    await client.queue("mail").put("Greeting", jid="other")
    (job,) = await client.queue("mail").pop()
    await job.complete()
    for act in (["tag", "vip", "new one"], ["priority", "--to", "-5"]):
        dry = await cli(*act, "--filter", "tag:news", "--dry-run")
        assert dry.out.startswith(f"{2 if act[0] == 'priority' else 3} jobs would be ")
    assert (await client.jobs.tagged_jids("vip"))[0] == 0
    assert (await cli("tag", "vip", "new one", "--filter", "tag:news")).out == "3 jobs tagged\n"
    assert (await client.jobs.tagged_jids("new one"))[0] == 3
    done = await cli("tag", "new one", "--filter", "jid:n1,other", "--remove")
    assert done.out == "1 job untagged\n"
    assert (await client.jobs.tagged_jids("new one"))[0] == 2
    done = await cli("priority", "--filter", "klass:Greet", "--to", "-5")
    assert done.out == "2 jobs changed to priority -5\n"
    assert (await cli("priority", "other", "--to=-9")).out == "1 job changed to priority -9\n"
    priorities = [each.priority for each in await client.queue("mail").peek(count=9)]
    assert priorities == [-9, -5, -5]
    for wrong in (
        ["priority", "--to", "1"],
        ["priority", "n1", "--filter", "tag:news", "--to", "1"],
        ["tag", "--filter", "tag:news"],
        ["tag", "n1", "x", "--dry-run"],
    ):
        assert (await cli(*wrong)).code == 2


async def test_move_and_tag_change_the_job(client: Client, cli: Aioqless) -> None:
    await failing(client, "a")
    assert (await cli("move", "a", "post", "--priority", "-3")).out == "a moved from mail to post\n"
    job = await client.jobs.get("a")
    assert job and (job.queue, job.state, job.priority) == ("post", "waiting", -3)
    assert (await cli("tag", "a", "urgent", "--json")).out.split() == [
        "[",
        '"news",',
        '"urgent"',
        "]",
    ]
    assert (await cli("tag", "a", "news", "--remove")).out == "urgent\n"
    await client.queue("post").pop(worker="ann")
    assert "which loses its lock" in (await cli("move", "a", "mail")).err


async def test_put_reads_data_from_a_file_and_refuses_invalid_json(
    client: Client, cli: Aioqless, tmp_path: Path
) -> None:
    (tmp_path / "data.json").write_text('{"big": 1}')
    jid = (await cli("put", "mail", "Greet", f"@{tmp_path}/data.json")).out.strip()
    job = await client.jobs.get(jid)
    assert job and job.data == {"big": 1}
    assert "can't be read from" in (await cli("put", "mail", "Greet", "@nowhere")).err
    refused = await cli("put", "mail", "Greet", '{"a": }')
    assert refused.code == 2 and "the data is not JSON" in refused.err
    deep = await cli("put", "mail", "Greet", "[" * 3_000 + "]" * 3_000)
    assert deep.code == 2 and "nested too deeply" in deep.err
    without_queue = await cli("put", "Greet", '{"big": 1}')
    assert without_queue.code == 2 and "put QUEUE KLASS DATA" in without_queue.err


NOT_STRICT = {
    '{"share": NaN}': "invalid character",
    '{"name": "\\ud800"}': "half of a surrogate pair",
    "no json": "malformed",
    "": "truncated",
    "[" * 3_000 + "]" * 3_000: "nested too deeply",
    '{"name": "\udcff"}': "half of a surrogate pair",
}


@pytest.mark.parametrize(("data", "why"), NOT_STRICT.items(), ids=range(len(NOT_STRICT)))
async def test_job_whose_data_is_no_json_is_listed_beside_the_others(
    client: Client, cli: Aioqless, data: str, why: str
) -> None:
    for jid in ("bad", "good"):
        await client.queue("mail").put("Greet", {"n": 1.50}, jid=jid)
    stored = data.encode(errors="surrogateescape")
    await client.redis.hset(f"{client.namespace}:j:bad", "data", stored)
    listed = json.loads((await cli("jobs", "queue:mail", "--json")).out)
    single = [json.loads((await cli("get", jid, "--json")).out) for jid in ("bad", "good")]
    for jobs in (listed, single):
        shown = {job["jid"]: (job["data"], job["data_error"]) for job in jobs}
        assert shown["good"] == ({"n": 1.5}, None)
        text, error = shown["bad"]
        assert text == data.encode(errors="backslashreplace").decode() and why in error
    assert (await cli("get", "bad")).code == 0


async def test_clear_asks_for_confirmation_and_keeps_running_jobs(
    client: Client, cli: Aioqless
) -> None:
    await client.queue("mail").put("Greet", jid="running")
    await client.queue("mail").pop(worker="ann")
    await failing_in_post(client)
    for jid, delay in (("a", 0), ("b", 0), ("later", 60)):
        await client.queue("mail").put("Greet", jid=jid, delay=delay)
    assert (await cli("clear", "mail", "--dry-run")).out == "3 jobs of mail would be deleted\n"
    refused = await cli("clear", "mail")
    assert (
        refused.code == 1
        and "Delete 3 jobs of mail (waiting, scheduled, depends)?" in refused.err
        and "pass --yes" in refused.err
    )
    assert (
        await cli("clear", "mail", "--state", "scheduled", "--yes")
    ).out == "1 job of mail deleted\n"
    shown = json.loads((await cli("clear", "mail", "--yes", "--json")).out)
    assert shown == {"queue": "mail", "dry_run": False, "canceled": 2, "kept": 0, "kept_for": {}}
    assert (await cli("clear", "mail")).out == "0 jobs of mail deleted\n", (
        "there is nothing to ask for"
    )
    assert await states(client, "running", "a", "b", "later", "bad") == {
        "running": "running mail",
        "bad": "failed post",
    }
    assert (await cli("clear", "post", "--yes")).out == "0 jobs of post deleted\n"
    assert (await cli("clear", "post", "--state", "all", "--yes")).out == "1 job of post deleted\n"


async def failing_in_post(client: Client) -> None:
    await failing(client, "bad", queue="post")


async def test_clear_reports_kept_jobs_and_unknown_queues(client: Client, cli: Aioqless) -> None:
    await client.queue("mail").put_many(_events(count) for count in range(3))
    await client.queue("post").put("Greet", jid="waits", depends=["n1"])
    for option, verb, some in (
        ("--dry-run", "would stay", "2 jobs of mail would be"),
        ("--yes", "stayed", "2 jobs of mail"),
    ):
        ended = await cli("clear", "mail", option)
        assert (ended.code, ended.out) == (1, f"{some} deleted\n")
        assert (
            ended.err
            == f"aioqless: 1 job {verb}, since jobs that aren't deleted depend on them: waits on "
            f"n1\n"
        )
    ended = await cli("clear", "mial")
    assert (ended.code, ended.err) == (
        1,
        "aioqless: no job was ever put into mial; did you mean mail?\n",
    )
    assert (await cli("clear", "mail", "--state", "running")).code == 2


async def test_signal_sends_a_value_once(client: Client, cli: Aioqless) -> None:
    await client.queue("mail").put("Greet", jid="a")
    assert (await cli("signal", "a", "approval", '{"ok": true}')).out == (
        "signal approval sent to a\n"
    )
    assert "the job has this signal already" in (await cli("signal", "a", "approval")).err
    assert (await cli("signal", "a", "approval", "7", "--replace")).code == 0
    assert "the data is not JSON" in (await cli("signal", "a", "other", "yes")).err
    [step] = await client.jobs.steps("a")
    assert (step.kind, step.name, step.value) == ("signal", "approval", 7)


async def test_get_names_the_root_cause_of_a_workflow_that_waits(
    client: Client, cli: Aioqless
) -> None:
    mail = client.queue("mail")
    await mail.put("Page", jid="page")
    await mail.put("Book", jid="book", depends=["page"])
    await mail.put("Mail", jid="send", depends=["book"])
    shown = (await cli("get", "send")).out
    assert "waiting for jobs that have not ended:\n  page  Page  waiting in mail\n" in shown
    await (await mail.pop())[0].fail("no paper")
    shown = (await cli("get", "send")).out
    assert "waiting for failed jobs:\n  page  Page  failed in mail: no paper\n" in shown
    assert "It is waiting for" not in (await cli("get", "page")).out


async def test_get_shows_what_a_parked_job_waits_for(client: Client, cli: Aioqless) -> None:
    await client.queue("mail").put("Greet", jid="a")
    await client.queue("mail").pop(worker="ann")
    held: Any = {"jid": "a", "worker": "ann"}
    await DurableCommands(client.internals.store).wait(
        **held, wait_kind="wait", name="approval", timeout=60
    )
    await client.internals.store.release(**held, waiting=["wait:approval"])
    assert "it waits for signal approval" in (await cli("get", "a")).out


async def test_data_that_is_no_json_can_be_corrected_in_an_editor(
    client: Client, cli: Aioqless, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.queue("mail").put("Greet", {"share": 1}, jid="bad")
    (job,) = await client.queue("mail").pop(worker="ann")
    await job.fail("broken", group="typo")
    await client.redis.hset(f"{client.namespace}:j:bad", "data", '{"share": NaN}')
    monkeypatch.setenv("EDITOR", "true")
    assert "the data is unchanged" in (await cli("edit", "bad")).err
    monkeypatch.setenv("EDITOR", "sed -i s/NaN/2/")
    assert "retried in mail, with the new data" in (await cli("edit", "bad")).out
    edited = await client.jobs.get("bad")
    assert edited and edited.data == {"share": 2}
