"""When a worker considers Redis unavailable, and the delay before its next attempt."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from aioqless.worker.context import Outage
from aioqless.worker.settings import ReconnectDelays
from tests.worker.conftest import Lines


async def test_reconnect_delays_grow_from_the_first_to_the_longest(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("aioqless.worker.context.time", SimpleNamespace(monotonic=lambda: now))
    outage = Outage(ReconnectDelays(first=0.2, longest=3.0))
    away = ConnectionError("away")
    assert outage.record_failure(away, now) == pytest.approx(0.2)
    now += 2
    assert outage.record_failure(away, now) == pytest.approx(1.2)
    now += 100
    assert outage.record_failure(away, now) == 3.0
    outage.record_success()
    assert outage.record_failure(away, now) == pytest.approx(0.2)
    assert (
        len(lines.of("worker.redis_lost")) == 2 and len(lines.of("worker.redis_reconnected")) == 1
    )


async def test_failed_call_that_was_sent_before_the_last_reply_starts_no_outage(
    lines: Lines,
) -> None:
    outage = Outage(ReconnectDelays(first=0.2, longest=3.0))
    asked = time.monotonic()
    outage.record_failure(ConnectionError("away"), asked)
    outage.record_success()
    assert (
        outage.record_failure(ConnectionError("connection refused before it was back"), asked)
        == 0.2
    )
    assert (
        outage.reached
        and len(lines.of("worker.redis_lost")) == len(lines.of("worker.redis_reconnected")) == 1
    )
    outage.record_failure(ConnectionError("away again"), time.monotonic())
    assert not outage.reached and len(lines.of("worker.redis_lost")) == 2
