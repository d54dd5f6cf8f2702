"""Sentry gets exceptions of handlers without the data of jobs."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeAlias

import msgspec
import pytest
import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.integrations.asyncio import AsyncioIntegration
from sentry_sdk.integrations.logging import LoggingIntegration
from sentry_sdk.integrations.threading import ThreadingIntegration
from sentry_sdk.transport import Transport

from aioqless import Client, Fail, Job, NewJob, Retry, job
from aioqless.contrib.telemetry import sentry
from aioqless.handlers import Handler
from tests.conftest import Until
from tests.worker.conftest import Lines, Work


class KeepingTransport(Transport):
    """A transport that keeps what would be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, Any]] = []
        self.sent = b""

    def capture_envelope(self, envelope: Envelope) -> None:
        self.sent += envelope.serialize()
        if (event := envelope.get_event()) is not None:
            self.events.append(dict(event))


RunFailing: TypeAlias = Callable[..., Awaitable[KeepingTransport]]


@pytest.fixture
def sentry_of() -> Iterator[Callable[..., KeepingTransport]]:
    """Initialize Sentry as applications do.

    Without a list, the integrations are those that the SDK enables by default.
    """

    def start(**options: Any) -> KeepingTransport:
        transport = KeepingTransport()
        integrations = [
            LoggingIntegration(level=logging.DEBUG, event_level=logging.ERROR),
            AsyncioIntegration(),
            ThreadingIntegration(),
        ]
        given = {
            "default_integrations": False,
            "integrations": integrations,
            "attach_stacktrace": True,
        }
        sentry_sdk.init(dsn="http://key@127.0.0.1:1/1", transport=transport, **given | options)  # type: ignore[arg-type]
        return transport

    yield start
    sentry_sdk.init(default_integrations=False)


@pytest.fixture
def run_failing(
    client: Client,
    work: Work,
    lines: Lines,
    until: Until,
    sentry_of: Callable[..., KeepingTransport],
) -> RunFailing:
    """Run jobs one by one until each has failed; return what Sentry would get.

    The options are those of Sentry: `await run_failing(handler, new, traces_sample_rate=1.0)`.
    """

    async def run(handler: Handler, *jobs: NewJob, **options: Any) -> KeepingTransport:
        transport = sentry_of(**options)
        async with work(handler, sentry.report):
            for count, new in enumerate(jobs, 1):
                await client.queue("mail").put(new)
                await until(lambda: len(lines.of("job.failed")) == count)  # noqa: B023
        return transport

    return run


@job(klass="Charge")
def charge(job: Job[Any], error: str) -> None:
    raise {
        "bug": ValueError("wrong"),
        "retry": Retry(delay=600),
        "fail": Fail("no money", group="refused"),
    }[error]


async def test_retry_and_fail_of_a_handler_are_not_reported(
    client: Client,
    work: Work,
    until: Until,
    lines: Lines,
    sentry_of: Callable[..., KeepingTransport],
) -> None:
    transport = sentry_of(integrations=[])
    async with work(charge, sentry.report):
        for error in ("retry", "fail"):
            await client.queue("mail").put(charge.data(error=error))
        await until(lambda: lines.of("job.retried") and lines.of("job.failed"))
    assert transport.events == []


CARD, NAME, AMOUNT = "4111-1111-1111-1111", 'Zoë "Z" Quartz', 987_654_321
MAIL = "ada@example.com"  # not beside a handler, whose source is sent


class Purchase(msgspec.Struct):
    card: str
    name: str


def _log_and_raise(job: Job[Any], card: str, name: str, amount: int) -> None:
    sentry_sdk.add_breadcrumb(
        category="bank",
        message=f"charging {name}",
        data={"card": card, "amount": amount, "job": [card, {"of": name}]},
    )
    logging.getLogger("shop").info(
        "charging %s of %r", amount, name, extra={"purchase": Purchase(card, name)}
    )
    logging.getLogger("shop").error("the bank refused %s", card)
    try:
        raise KeyError(card)
    except KeyError as error:
        raise ValueError(f"wrong card {card} of {job.data}") from error


@job(klass="OnTheLoop")
async def on_the_loop(job: Job[Any], card: str, name: str, amount: int) -> None:
    _log_and_raise(job, card, name, amount)


@job(klass="InAThread")
def in_a_thread(job: Job[Any], card: str, name: str, amount: int) -> None:
    _log_and_raise(job, card, name, amount)


@pytest.mark.parametrize("handler", [on_the_loop, in_a_thread])
async def test_data_of_a_job_is_not_sent(handler: Handler, run_failing: RunFailing) -> None:
    new = handler.data(card=CARD, name=NAME, amount=AMOUNT)
    transport = await run_failing(handler, new, traces_sample_rate=1.0)
    logged, raised = (event for event in transport.events if event.get("type") != "transaction")
    assert (
        logged["threads"]["values"][0]["stacktrace"]["frames"]
        and logged["logentry"]["message"] == "the bank refused %s"
    )
    assert [each["type"] for each in raised["exception"]["values"]] == ["KeyError", "ValueError"]
    assert (
        raised["exception"]["values"][1]["stacktrace"]["frames"][-1]["function"] == "_log_and_raise"
    )
    assert "charging [Filtered]" in [each["message"] for each in raised["breadcrumbs"]["values"]]
    for secret in (CARD, NAME, "Quartz", str(AMOUNT)):
        assert secret.encode() not in transport.sent
    assert b'"vars"' not in transport.sent


@job(klass="Annotate")
async def annotate(job: Job[Any], card: str, name: str, mail: str) -> None:
    sentry_sdk.set_context("purchase", {"type": card, "status": [name], card: 1})
    sentry_sdk.set_user({"id": name, "email": mail, "data": {mail: "x"}})
    sentry_sdk.set_tag("card", card)
    sentry_sdk.set_tag(mail.replace("@", "-"), mail)
    sentry_sdk.Scope.get_isolation_scope().set_extra(
        "purchase", {card: {"level": mail}, (name,): 1}
    )
    sentry_sdk.Scope.get_isolation_scope().fingerprint = [mail]
    sentry_sdk.Scope.get_isolation_scope().add_attachment(bytes=card.encode(), filename="receipt")
    sentry_sdk.add_breadcrumb(category=card, type=card, data={"type": card, mail: 1})
    with sentry_sdk.start_transaction(name=f"charge {card}", op=mail) as transaction:
        transaction.set_tag("card", card)
        with sentry_sdk.start_span(op=card) as span:
            span.description = name  # the argument has another name in old versions
            span.set_data("type", card)
            span.set_data(mail, mail)
    raise ValueError("wrong")


async def test_data_that_a_handler_gives_to_sentry_is_not_sent(run_failing: RunFailing) -> None:
    new = annotate.data(card=CARD, name=NAME, mail=MAIL).with_options(jid="a", tags=["vip"])
    transport = await run_failing(annotate, new, traces_sample_rate=1.0)
    (event,) = transport.events
    assert b'"type":"transaction"' in transport.sent and b'"spans":[{' in transport.sent
    assert event["contexts"]["job"]["jid"] == "a" and event["contexts"]["job"]["tags"] == ["vip"]
    assert event["tags"]["aioqless.klass"] == "Annotate"
    assert event["transaction"] == "charge [Filtered]"  # as the handler named it
    for secret in (CARD, NAME, "Quartz", MAIL):
        assert secret.encode() not in transport.sent


async def test_job_is_named_though_its_data_has_the_same_values(run_failing: RunFailing) -> None:
    data = {"error": "bug", "of": ["mail", "Charge", "jid-of-a-job"]}
    transport = await run_failing(charge, NewJob("Charge", data, jid="jid-of-a-job"))
    (event,) = transport.events
    assert event["contexts"]["job"]["jid"] == "jid-of-a-job" and event["transaction"] == "Charge"
    assert event["tags"]["aioqless.queue"] == "mail"


async def test_texts_beside_data_of_many_values_are_not_sent(run_failing: RunFailing) -> None:
    @job(klass="Broadcast")
    async def broadcast(job: Job[Any], tokens: list[str]) -> None:
        sentry_sdk.add_breadcrumb(message=f"the last one is {tokens[-1]}")
        raise ValueError(tokens[0])

    new = broadcast.data(tokens=[f"token-{number}" for number in range(2000)])
    transport = await run_failing(broadcast, new)
    (event,) = transport.events
    assert event["exception"]["values"][0]["value"] == "[Filtered]"
    assert event["exception"]["values"][0]["type"] == "ValueError"
    assert b"token-0" not in transport.sent and b"token-1999" not in transport.sent


async def test_data_refused_by_a_handler_is_not_sent(run_failing: RunFailing) -> None:
    wrong = NewJob("OnTheLoop", {"card": [CARD], "name": NAME, "amount": CARD})
    transport = await run_failing(on_the_loop, wrong)
    assert [each["type"] for event in transport.events for each in event["exception"]["values"]][
        -1
    ] == "InvalidData"
    assert CARD.encode() not in transport.sent and b"Quartz" not in transport.sent


async def test_event_that_cannot_be_filtered_is_not_sent(run_failing: RunFailing) -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError(CARD)

    @job(klass="Hostile")
    async def hostile(job: Job[Any], card: str) -> None:
        sentry_sdk.add_breadcrumb(message=card, data={"what": Hostile()})
        raise ValueError("wrong")

    transport = await run_failing(hostile, hostile.data(card=CARD))
    assert transport.events == []


@pytest.mark.parametrize("of_tasks", [[], [AsyncioIntegration()]], ids=["alone", "asyncio"])
async def test_data_in_the_log_of_an_earlier_job_is_not_sent_with_the_error_of_another(
    run_failing: RunFailing, of_tasks: list[AsyncioIntegration]
) -> None:
    @job(klass="Named")
    async def named(job: Job[Any], card: str) -> None:
        raise ValueError(f"wrong card {card}")

    jobs = [named.data(card=card) for card in (CARD, "none", "none")]
    integrations = [LoggingIntegration(level=logging.DEBUG), *of_tasks]
    transport = await run_failing(named, *jobs, integrations=integrations)
    assert len(transport.events) == 3
    assert CARD.encode() not in transport.sent
