"""Redaction of secrets in data and messages."""

from __future__ import annotations

import time

import httpx
import pytest

from aioqless import Client
from aioqless.contrib.dashboard import Access
from aioqless.contrib.dashboard.redaction import HIDDEN, Redaction

RULES = Redaction(Access().redact)
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


def test_nothing_is_hidden_without_rules() -> None:
    assert Redaction(()).redact("password=hunter2") == "password=hunter2"


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
    message = (
        "Traceback (most recent call last):\n  login(user, 'hunter2')\nOSError: hunter2 "
        "isn't right, token=abcdef"
    )
    await job.fail("mail-OSError", message)
    for path in (
        "/",
        "/failures",
        "/group?name=mail-OSError",
        f"/job?jid={jid}",
        "/tag?name=welcome",
        "/search?q=Send",
    ):
        page = (await http.get(path)).text
        assert "Send" in page and "hunter2" not in page and "abcdef" not in page, path
    await client.jobs.retry(jid)
    page = (await http.get(f"/job?jid={jid}")).text
    assert "Last failure" in page and "hunter2" not in page
