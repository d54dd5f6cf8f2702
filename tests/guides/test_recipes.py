"""The recipes do what they say."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from aioqless import Client
from aioqless.testing import RunRetried, perform, run_jobs
from tests.conftest import existing_job
from tests.guides.examples import Program, modules
from tests.pages import ROOT, blocks

OWN_CODE = """
import builtins
sent, reports = [], []
async def send_mail(to, subject, message_id):
    sent.append((to, subject, message_id))
    return "accepted"
async def write_report(day): reports.append(day)
async def charge_card(order, idempotency_key): ...
async def put_back(order): ...
async def refund_card(order): ...
vars(builtins).update(  # the modules of the page use them, too
    send_mail=send_mail, charge_card=charge_card, put_back=put_back, refund_card=refund_card,
)
"""


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any, str]]:
    """Return what webhooks were sent: the first attempt of each fails."""
    requests: list[tuple[str, Any, str]] = []

    async def post(
        _client: httpx.AsyncClient, url: str, *, json: object, headers: dict[str, str]
    ) -> httpx.Response:
        requests.append((url, json, headers["Idempotency-Key"]))
        status = 503 if len(requests) == 1 else 200
        return httpx.Response(status, request=httpx.Request("POST", url))

    monkeypatch.setattr(httpx.AsyncClient, "post", post)
    return requests


@pytest.fixture
def prices(tmp_path: Path) -> str:
    """Return the path of a file with two rows."""
    (tmp_path / "prices.csv").write_text("name,price\ntea,2.5\ncake,4\n")
    return str(tmp_path / "prices.csv")


@pytest.fixture
async def recipes(
    client: Client, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[dict[str, Any]]:
    """Run all recipes, and return their names."""
    monkeypatch.setenv("AIOQLESS_URL", redis_url)
    monkeypatch.setenv("AIOQLESS_NAMESPACE", client.namespace)
    with modules():
        program = Program(client, OWN_CODE)
        await program.run("recipes.md")
        with client.as_current():
            yield program.names


async def test_all_recipes_run_and_only_the_step_of_the_saga_fails(
    recipes: dict[str, Any], client: Client
) -> None:
    assert (await client.jobs.failed_counts()).keys() == {"no-address"}
    assert recipes["reports"] == [datetime.date(2026, 11, 1)]


async def test_status_page_shows_times_and_result_of_the_mail(
    recipes: dict[str, Any], client: Client
) -> None:
    jid = recipes["jid"]
    assert recipes["sent"] == [("ada@example.com", "Receipt 7", f"<{jid}@example.com>")]
    status = await recipes["read_status"](jid)
    assert (status["state"], status["result"]) == ("complete", "accepted")
    assert status["times"]["put"] <= status["times"]["popped"] <= status["times"]["done"]
    assert await recipes["read_status"]("unknown") == {"state": "unknown"}


async def test_status_page_shows_jobs_without_a_result(
    recipes: dict[str, Any], client: Client
) -> None:
    jid = await recipes["report"].put(day=datetime.date(2026, 11, 2))
    status = await recipes["read_status"](jid)
    assert (status["state"], status["result"]) == ("waiting", None)
    await run_jobs(client, [recipes["report"]])
    status = await recipes["read_status"](jid)
    assert (status["state"], status["result"]) == ("complete", None)
    (failed,) = (await client.jobs.failed_in("no-address"))[1]
    assert (await recipes["read_status"](failed.jid))["state"] == "failed"


async def test_file_is_imported_once_and_finished(
    recipes: dict[str, Any], client: Client, prices: str
) -> None:
    await recipes["import_file"](prices)
    await run_jobs(client, [recipes["load"], recipes["finish"]])
    status = await client.job_set(f"import-{prices}").status()
    assert (status.complete, status.failed) == (2, 0)
    assert (await existing_job(client, f"{prices}-1")).data == {"name": "cake", "price": 4.0}


async def test_failed_webhook_is_retried_and_has_its_jid_as_key(
    recipes: dict[str, Any], posted: list[tuple[str, Any, str]]
) -> None:
    new = recipes["notify"].data(url="https://shop.example/hook", event={"paid": "True"})
    run = await perform(new)
    assert isinstance(run.outcome, RunRetried)
    assert posted == [("https://shop.example/hook", {"paid": "True"}, run.job.jid)]


async def test_first_of_two_webhooks_counts(
    recipes: dict[str, Any], client: Client, posted: list[tuple[str, Any, str]]
) -> None:
    jid = await recipes["wait_for_payment"].put(order=7)
    await recipes["receive"](jid, True)
    await recipes["receive"](jid, False)
    await run_jobs(client, [recipes["wait_for_payment"], recipes["notify"]])
    assert [event for _, event, _ in posted] == [{"paid": "True"}]


def test_recipe_for_django_is_a_part_of_its_page() -> None:
    (test,) = (each for each in blocks(ROOT / "docs" / "recipes.md", "py") if "TestCase" in each)
    assert test in (ROOT / "docs" / "django.md").read_text("utf-8")
