"""The address of Redis: a URL, its parts, the environment."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from redis.asyncio.connection import parse_url

from aioqless import Client, redis_url
from aioqless.client.events import Put

VARIABLES = ("URL", "HOST", "PORT", "DB", "USERNAME", "PASSWORD")


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("REDIS_URL", *(f"AIOQLESS_{each}" for each in VARIABLES)):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(
    ("parts", "url"),
    [
        ({}, "redis://localhost:6379/0"),
        ({"host": "redis.internal", "port": 6380, "db": 2}, "redis://redis.internal:6380/2"),
        ({"host": "::1"}, "redis://[::1]:6379/0"),
        ({"password": "s3cret", "tls": True}, "rediss://:s3cret@localhost:6379/0"),
        (
            {"username": "ann", "password": "a:b/c@d?e#f%"},
            "redis://ann:a%3Ab%2Fc%40d%3Fe%23f%25@localhost:6379/0",
        ),
    ],
)
def test_parts_are_equivalent_to_their_url(parts: dict[str, Any], url: str) -> None:
    assert redis_url(**parts) == url
    said = parse_url(url)
    assert (said["host"], said["port"], said["db"]) == (
        parts.get("host", "localhost"),
        parts.get("port", 6379),
        parts.get("db", 0),
    )
    assert (said.get("username"), said.get("password")) == (
        parts.get("username"),
        parts.get("password"),
    )


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"port": 70000}, r"port must be an integer from 0 to 65535 \(got 70000\)"),
        ({"port": "6379"}, "port must be an integer"),
        ({"db": -1}, "db must be an integer"),
        ({"host": ""}, "host must not be empty"),
    ],
)
def test_invalid_parts_are_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        redis_url(**wrong)


def test_parts_come_from_the_environment_unless_a_url_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIOQLESS_PORT", "6380")
    assert Client().url == "redis://localhost:6380/0"
    monkeypatch.setenv("AIOQLESS_HOST", "redis.internal")
    monkeypatch.setenv("AIOQLESS_DB", "3")
    assert Client().url == "redis://redis.internal:6380/3"
    monkeypatch.setenv("REDIS_URL", "redis://other")
    assert Client().url == "redis://other"


@pytest.mark.parametrize("variable", ["PORT", "DB"])
def test_non_numeric_part_in_the_environment_is_refused(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(f"AIOQLESS_{variable}", "six")
    with pytest.raises(ValueError, match=rf"AIOQLESS_{variable} must be an integer \(got 'six'\)"):
        Client()


@pytest.mark.parametrize(
    ("url", "username", "whole"),
    [
        ("redis://host:1/2", None, "redis://:p%40ss@host:1/2"),
        ("redis://host:1/2", "ann", "redis://ann:p%40ss@host:1/2"),
        ("redis://bob@host:1/2", "ann", "redis://bob:p%40ss@host:1/2"),
        ("redis://:given@host:1/2", "ann", "redis://:given@host:1/2"),
        ("unix:///run/redis.sock?db=1", None, "unix://:p%40ss@/run/redis.sock?db=1"),
    ],
)
def test_url_without_a_password_uses_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, url: str, username: str | None, whole: str
) -> None:
    monkeypatch.setenv("AIOQLESS_PASSWORD", "p@ss")
    if username:
        monkeypatch.setenv("AIOQLESS_USERNAME", username)
    client = Client(url)
    assert client.url == whole
    assert "p@ss" not in str(client.endpoint) and "p%40ss" not in str(client.endpoint)


def test_password_alone_makes_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIOQLESS_PASSWORD", "p@ss")
    assert Client().url is None


@pytest.mark.parametrize(
    ("url", "given", "timeout"),
    [
        ("redis://h?socket_timeout=5", None, 5),
        ("redis://h?socket_timeout=5", 7, 7),
        ("redis://h", None, 30),
    ],
)
def test_timeout_comes_from_the_argument_or_the_url(
    url: str, given: float | None, timeout: float
) -> None:
    assert Client(url, timeout=given)._access.timeout == timeout


@pytest.mark.parametrize("url", ["redis://h?socket_timeout=soon", "redis://h?socket_timeout=0"])
def test_url_with_an_invalid_timeout_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="timeout"):
        Client(url)


async def test_timeout_of_the_url_does_not_apply_to_subscriptions(
    redis_url: str, namespace: str
) -> None:
    async with (
        Client(f"{redis_url}?socket_timeout=1", namespace=namespace) as client,
        client.events() as events,
    ):
        heard = asyncio.ensure_future(anext(aiter(events)))
        assert not (await asyncio.wait([heard], timeout=1.2))[0]
        await client.queue("mail").put("Greet", jid="a")
        event = await heard
        assert isinstance(event, Put) and event.jid == "a"


@pytest.mark.parametrize(
    "url", ["http://:s3cret@redis.internal", "s3cret@redis.internal:6379", "localhost"]
)
def test_url_of_another_scheme_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(
        ValueError, match="the URL of Redis must begin with redis://, rediss://, unix://"
    ) as refused:
        Client(url)
    assert "s3cret" not in str(refused.value)
