"""Redaction of secrets in data and messages."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import threading
import time

import httpx
import msgspec
import pytest

from aioqless import Client
from aioqless.contrib.dashboard import Privacy, create_app
from aioqless.contrib.dashboard.redaction import (
    HIDDEN,
    MAX_INDENTATION,
    MAX_SECRETS,
    TOO_LONG,
    TOO_MANY,
    JobRedaction,
    Redaction,
)
from aioqless.contrib.durable.generated_commands import DurableCommands
from aioqless.contrib.encryption import Encryption
from aioqless.contrib.output.generated_commands import EmitRow, OutputCommands
from tests.conftest import Until
from tests.contrib.dashboard.conftest import OPEN, entered
from tests.contrib.dashboard.steps import do
from tests.contrib.dashboard.test_access import client_of

RULES = Redaction(Privacy().redact)
HARMLESS = [
    "KeyError: 'token'",
    "the token is too old",
    "host: 10.0.0.1, port: 25",
    "https://example.com:8080/path?page=2",
    "a = b",
    "",
]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "login failed: password='hunter2', user='ada'",
            f"login failed: password='{HIDDEN}', user='ada'",
        ),
        ('{"api_token": "abc def", "x": 1}', f'{{"api_token": "{HIDDEN}", "x": 1}}'),
        ("Authorization: Bearer abc.def", f"Authorization: Bearer {HIDDEN}"),
        ("redis://shop:hunter2@host/0 refused", f"redis://shop:{HIDDEN}@host/0 refused"),
        (
            "https://example.com/?page=2&access_token=zz&x=1",
            f"https://example.com/?page=2&access_token={HIDDEN}&x=1",
        ),
        ('password="never closed', f'password="{HIDDEN}"'),
        *((each, each) for each in HARMLESS),
    ],
)
def test_value_after_a_hidden_name_in_a_text_is_hidden(said: str, shown: str) -> None:
    assert RULES.redact(said) == shown


def test_hidden_values_of_the_data_are_hidden_everywhere() -> None:
    stored = (
        '{"password": "sesame42", "to": "ada", "keys": {"secret": [{"n": 123456}, "ab", '
        "true, null]}}"
    )
    told = RULES.redact("nobody called sesame42 (ada, 123456), ab: True, None", stored)
    assert told == f"nobody called {HIDDEN} (ada, {HIDDEN}), ab: True, None"
    assert RULES.redact("as it is", "no JSON") == "as it is"


REPEATED = {
    "api_token": "sesame42",
    "copy": "see sesame42",
    "number": 7,
    "rows": [{"url": "https://h/x?t=sesame42"}, "Authorization: Bearer abcdef123456"],
    "note": "password=hunter22",
}


def test_hidden_values_are_hidden_in_the_other_fields_of_the_data_and_survive_an_edit() -> None:
    stored = json.dumps(REPEATED)
    shown = RULES.format(stored)
    for secret in ("sesame42", "abcdef123456", "hunter22"):
        assert secret not in shown
    assert json.loads(RULES.restore(shown, stored)) == REPEATED
    edited = RULES.restore(shown.replace('"number": 7', '"number": 8, "new": "x"'), stored)
    assert json.loads(edited) == REPEATED | {"number": 8, "new": "x"}
    with pytest.raises(ValueError, match="is hidden: replace it, or leave it as it was"):
        RULES.restore(shown.replace("see ", "look at "), stored)
    replaced = json.loads(RULES.restore(shown.replace(f"see {HIDDEN}", "nothing"), stored))
    assert replaced == REPEATED | {"copy": "nothing"}


@pytest.mark.parametrize("word", ["copy:sesame42", "-copy:guess", "copy:*"])
async def test_filter_by_a_field_finds_no_job_where_its_value_is_hidden(
    http: httpx.AsyncClient, client: Client, until: Until, word: str
) -> None:
    mail = client.queue("mail")
    secret = await mail.put("Send", {"api_token": "sesame42", "copy": "sesame42"})
    plain = await mail.put("Send", {"api_token": "sesame42", "copy": "other"})
    page = (await http.get("/jobs", params={"filter": word})).text
    assert secret not in page
    assert (plain in page) == (word != "copy:sesame42")
    await do(http, "select-tag", filter=word, found="2", tags="found")

    async def is_done() -> bool:
        return "found" in (await client.jobs.multiget(plain))[0].tags

    if word != "copy:sesame42":
        await until(is_done)
    assert (await client.jobs.multiget(secret))[0].tags == []


async def test_hidden_values_are_hidden_in_lists_steps_and_output(
    http: httpx.AsyncClient, client: Client
) -> None:
    jids = [await client.queue("mail").put("Send", REPEATED) for _ in range(2)]
    for path in (f"/job?jid={jids[0]}", "/queue?name=mail&tab=waiting", "/jobs?filter=Send"):
        page = (await http.get(path)).text
        assert "api_token" in page or "Send" in page
        assert not re.search("sesame42|abcdef123456|hunter22", page)


def test_nothing_is_hidden_without_rules() -> None:
    assert Redaction(()).redact("password=hunter2") == "password=hunter2"
    long = "password=hunter2 " * 500_000
    assert Redaction(()).redact(long, '{"password": "hunter2"}') == long


@pytest.mark.parametrize(
    "long",
    ["a" * 10**6, "a=" * 10**5, "://:" * 10**5, "token='" * 10**5, "token " * 10**5, "'" * 10**6],
)
def test_time_is_linear_in_the_length_of_a_text(long: str) -> None:
    began = time.thread_time()
    RULES.redact(long)
    assert time.thread_time() - began < 3


async def test_no_page_shows_a_secret_of_a_failure_message(
    http: httpx.AsyncClient, client: Client
) -> None:
    jid = await client.queue("mail").put(
        "Send", {"to": "ada", "smtp_password": "hunter2"}, tags=["welcome"]
    )
    (job,) = await client.queue("mail").pop()
    await job.log("called hunter2", host="hunter2")
    message = (
        "Traceback (most recent call last):\n  login(user, 'hunter2')\nOSError: hunter2 "
        "isn't right, token=abcdef"
    )
    await job.fail(message, group="mail-OSError")
    for path in (
        "/",
        "/failures",
        "/group?name=mail-OSError",
        f"/job?jid={jid}",
        "/jobs?filter=tag:welcome",
        "/jobs?filter=Send",
    ):
        page = (await http.get(path)).text
        assert "Send" in page and "hunter2" not in page and "abcdef" not in page, path
    await client.jobs.retry(jid)
    page = (await http.get(f"/job?jid={jid}")).text
    assert "Last failure" in page and "hunter2" not in page


@pytest.mark.parametrize("encrypted", [False, True])
async def test_message_of_a_list_hides_secrets_of_long_and_of_encrypted_data(
    redis_url: str, namespace: str, encrypted: bool
) -> None:
    codec = Encryption(Encryption.new_key()) if encrypted else None
    async with Client(redis_url, namespace=namespace, codec=codec) as client:
        data = {"smtp_password": "hunter2", "text": "x" * (10 if encrypted else 5000)}
        await client.queue("mail").put("Send", data)
        (job,) = await client.queue("mail").pop()
        await job.fail("Traceback:\nOSError: hunter2 isn't right", group="mail-OSError")
        async with client_of(create_app(client, identify=OPEN)) as http:
            for path in ("/", "/failures", "/failures?by=group", "/group?name=mail-OSError"):
                page = (await http.get(path)).text
                assert f"OSError: {HIDDEN} isn&#39;t right" in page, path
                assert "hunter2" not in page, path


async def test_value_of_a_hidden_name_is_hidden_in_context_history_and_steps(
    http: httpx.AsyncClient, client: Client
) -> None:
    context = {"session_token": "hunter2 uno"}
    jid = await client.queue("mail").put("Send", {}, context=context)
    (job,) = await client.queue("mail").pop(worker="ann")
    await job.log("called", api_token="hunter2 duo tres")
    await DurableCommands(client.internals.store).step(
        jid=jid, worker="ann", kind="step", name="fetch_token", result='"hunter2 quattuor"'
    )
    page = (await http.get(f"/job?jid={jid}")).text
    assert "session_token" in page and "called" in page and "fetch_token" in page
    assert not [word for word in ("hunter2", "uno", "tres", "quattuor") if word in page]


async def test_secret_is_hidden_where_a_text_is_cut(
    http: httpx.AsyncClient, client: Client
) -> None:
    secret = "hunter2-" + "x" * 30
    jid = await client.queue("mail").put("Send", {"password": secret})
    (job,) = await client.queue("mail").pop(worker="ann")
    await job.log("called", text=f"{'.' * 980} {secret}")
    await DurableCommands(client.internals.store).step(
        jid=jid, worker="ann", kind="step", name="plan", result=f'"{"." * 980} {secret}"'
    )
    text = json.dumps([secret + "." * 19_990])
    row = EmitRow(jid=jid, fence=str(job.fence), start=0, count=1, values=text, ttl=60)
    await OutputCommands(client.internals.store).emit(worker="ann", batch=[row])
    page = (await http.get(f"/job?jid={jid}")).text
    assert "....." in page and "hunter2" not in page and "xxxx" not in page


async def test_digest_of_data_does_not_confirm_a_guess_of_a_hidden_value(
    http: httpx.AsyncClient, client: Client
) -> None:
    raw = '{"pin_token":"4711"}'
    jid = await client.queue("mail").put("Send", msgspec.Raw(raw.encode()))
    mark = re.search(r'name="was" value="([^"]+)"', (await http.get(f"/job?jid={jid}")).text)
    assert mark
    digests = [hashlib.new(name, raw.encode()).hexdigest() for name in ("sha256", "sha1", "md5")]
    assert not [each for each in digests if each.startswith(mark[1]) or mark[1] in each]


def test_texts_are_not_shown_when_too_many_values_are_hidden() -> None:
    stored = json.dumps({"tokens": [f"{number:05}" for number in range(MAX_SECRETS)]})
    assert RULES.redact("called 00042", stored) == f"called {HIDDEN}"
    stored = json.dumps({"tokens": [f"{number:05}" for number in range(MAX_SECRETS + 1)]})
    assert RULES.redact("called 00042", stored) == TOO_MANY
    deep = "[" * 5_000 + '{"token": "sesame42"}' + "]" * 5_000
    assert "sesame42" not in RULES.redact("called sesame42", deep)


@pytest.mark.parametrize(
    ("secrets", "text"),
    [
        ([f"{number:05}" for number in range(MAX_SECRETS)], "00042 " * 200_000),
        (["a" * 90 + f"{number:05}" + "a" for number in range(MAX_SECRETS)], "a" * 29_000),
        (["a" * length + "b" + "a" for length in range(500, 1500)], "a" * 2_000),
    ],
    ids=["long text", "repetitive text", "long values"],
)
def test_work_for_the_texts_of_a_page_is_bounded(secrets: list[str], text: str) -> None:
    job, began = RULES.of_job(json.dumps({"tokens": secrets})), time.thread_time()
    shown = [job.redact(text) for _ in range(300)]
    assert time.thread_time() - began < 10
    assert shown[-1] == TOO_LONG
    assert not any(secret in each for each in set(shown) for secret in secrets)


@pytest.mark.parametrize("end", ["1", "[" * 190 + "1" + "]" * 190], ids=["flat", "deep"])
def test_indentation_of_deep_data_is_bounded(end: str) -> None:
    count = 200_000 // (len(end) + 1)
    data = "[" * 9 + ",".join([end] * count) + "]" * 9
    deep = "[" * 199 + ",".join(["1"] * 100_000) + "]" * 199
    for each in (data, deep):
        assert len(each) <= len(RULES.format(each)) < 4 * len(each) + MAX_INDENTATION
    assert RULES.format('{"a": [1]}') == '{\n  "a": [\n    1\n  ]\n}'


async def test_other_requests_are_answered_while_a_large_page_is_prepared_and_rendered(
    site: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    jid = await client.queue("mail").put("Send", {"password": "hunter2"})
    (job,) = await client.queue("mail").pop()
    await job.fail("hunter2", group="mail-OSError")
    steps = [threading.Event() for _ in range(4)]
    of_job, redact = Redaction.of_job, JobRedaction.redact

    def slow_of_job(self: Redaction, stored: str | None) -> JobRedaction:
        steps[0].set()
        assert steps[1].wait(60)
        return of_job(self, stored)

    def slow_redact(self: JobRedaction, text: str) -> str:
        steps[2].set()
        assert steps[3].wait(60)
        return redact(self, text)

    monkeypatch.setattr(Redaction, "of_job", slow_of_job)
    monkeypatch.setattr(JobRedaction, "redact", slow_redact)
    async with entered(site) as http, entered(site) as other:
        for path in (f"/job?jid={jid}", f"/live?at=/job?jid={jid}"):
            for step in steps:
                step.clear()
            asking = asyncio.create_task(_first_part(http, path))
            for begins, goes_on in (steps[:2], steps[2:]):
                assert await asyncio.to_thread(begins.wait, 60)
                assert (await other.get("/queues")).status_code == 200
                goes_on.set()
            assert "hunter2" not in await asking


async def _first_part(http: httpx.AsyncClient, path: str) -> str:
    """Return a page, or the first event of a stream that has one."""
    async with http.stream("GET", path) as answer:
        if not path.startswith("/live"):
            return (await answer.aread()).decode()
        return await anext(line async for line in answer.aiter_lines() if "data: " in line)
