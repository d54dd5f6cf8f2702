"""What handlers raise is reported, and what they decide is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from aioqless import Client, Fail, Job, Retry, job
from aioqless.extras import sentry
from tests.conftest import Until
from tests.worker.conftest import Lines, Work


class Kept(Transport):
    """What would be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, Any]] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        if (event := envelope.get_event()) is not None:
            self.events.append(dict(event))


@pytest.fixture
def sent() -> Iterator[list[dict[str, Any]]]:
    transport = Kept()
    sentry_sdk.init(dsn="http://key@127.0.0.1:1/1", transport=transport, default_integrations=False)
    yield transport.events
    sentry_sdk.init(default_integrations=False)  # the default ones would stay in all tests that follow


@job(klass="Charge")
def charge(job: Job[Any], error: str) -> None:
    raise {"bug": ValueError("wrong"), "retry": Retry(600), "fail": Fail("refused", "no money")}[error]


async def test_an_error_is_reported_with_the_job_but_without_its_data(
    client: Client, work: Work, until: Until, sent: list[dict[str, Any]]
) -> None:
    async with work(charge, sentry.reported):
        await client.queue("mail").put(charge.data(error="bug"), jid="a")
        await until(lambda: sent)
    (event,) = sent
    assert event["transaction"] == "Charge" and event["tags"]["aioqless.queue"] == "mail"
    assert event["contexts"]["job"]["jid"] == "a" and "data" not in event["contexts"]["job"]
    assert event["exception"]["values"][0]["type"] == "ValueError"


async def test_what_a_handler_decides_is_not_reported(
    client: Client, work: Work, until: Until, lines: Lines, sent: list[dict[str, Any]]
) -> None:
    async with work(charge, sentry.reported):
        for error in ("retry", "fail"):
            await client.queue("mail").put(charge.data(error=error))
        await until(lambda: lines.of("job.retried") and lines.of("job.failed"))
    assert sent == []
