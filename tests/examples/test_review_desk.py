"""The review desk example in a browser: several people and windows, reloads, timeouts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest
import redis
from playwright.sync_api import Browser, Route, expect

from aioqless.testing import server
from tests.examples.desk import Person, chromium, desk, put_all

Sit: TypeAlias = Callable[[str], Person]
USUAL, SHORT = 90, 2  # seconds of a reservation


@pytest.fixture(scope="module")
def browser(chromium_program: str) -> Iterator[Browser]:
    with chromium(chromium_program) as browser:
        yield browser


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with server() as url:
        yield url


@pytest.fixture(scope="module")
def usual(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with desk(url, tmp_path_factory.mktemp("usual"), USUAL) as address:
        yield address


@pytest.fixture(scope="module")
def short(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with desk(url, tmp_path_factory.mktemp("short"), SHORT) as address:
        yield address


@pytest.fixture
def limit(request: pytest.FixtureRequest) -> int:
    return int(getattr(request, "param", USUAL))


@pytest.fixture
def address(request: pytest.FixtureRequest, url: str, limit: int) -> str:
    """Return the address of a desk with unfinished items."""
    address: str = request.getfixturevalue("short" if limit == SHORT else "usual")
    with redis.Redis.from_url(url) as connection:
        connection.flushdb()
    put_all(url)
    return address


@pytest.fixture
def open_browsers(browser: Browser, address: str) -> Iterator[Sit]:
    """Let people sign in, each in their own browser; pages must log no error."""
    people: list[Person] = []

    def open_browsers(name: str) -> Person:
        people.append(Person(browser.new_context(), address))
        return people[-1].sign_in(name)

    yield open_browsers
    for person in people:
        person.context.close()
        # browsers log these, however the page handles them
        refused = r"the server responded with a status of (404|409)"
        assert [text for text in person.complaints if not re.search(refused, text)] == []


def history(url: str, name: str) -> list[str]:
    """Return a job's history from Redis."""
    with redis.Redis.from_url(url, decode_responses=True) as connection:
        return list(connection.lrange(f"ql:j:docstring-{name}-history", 0, -1))


def test_job_passes_from_machine_to_person_to_machine(open_browsers: Sit, url: str) -> None:
    ada = open_browsers("Ada")
    name = ada.take()
    assert ada.page.inner_text("#item-signature").startswith(name.partition(".")[2] + "(")
    ada.page.get_by_label(re.compile("^Why")).fill("<b>no</b> example")
    ada.press("Escape")
    ada.judge("3")
    ada.sees("#done", re.compile(r"^1 of \d\d"))
    ada.sees("#by-person", "Ada")
    assert ada.recent_items() == [f"{name} you said: Wants an example"]
    events = history(url, name)
    assert any('"popped"' in event and '"Ada@' in event for event in events)
    with redis.Redis.from_url(url, decode_responses=True) as connection:
        stored = connection.hgetall(f"ql:j:docstring-{name}")
    assert (
        stored["state"] == "complete"
        and '"label":"example","note":"<b>no</b> example"' in stored["data"]
        and '"agreed":' in stored["data"]
    )


@pytest.mark.long
def test_reload_changes_nothing(open_browsers: Sit) -> None:
    ada = open_browsers("Ada")
    name = ada.take()
    ada.page.get_by_label(re.compile("^Why")).fill("halfway")
    for _ in range(3):
        ada.page.reload()
        assert ada.item() == name
    expect(ada.page.get_by_label(re.compile("^Why"))).to_have_value("halfway")
    assert float(ada.page.inner_text("#left").replace(":", "")) > 0


def test_double_click_counts_once(open_browsers: Sit, url: str) -> None:
    ada = open_browsers("Ada")
    ada.page.get_by_role("button", name="Take the next").dblclick()
    first = ada.item()
    ada.page.locator("[data-label=clear]").dblclick()
    ada.page.wait_for_function(
        "name => document.querySelector('#item-name').textContent !== name",
        arg=first.rpartition(".")[2],
    )
    ada.sees("#done", re.compile("^1 of"))
    assert len(ada.recent_items()) == 1
    assert sum('"Ada@' in event and '"popped"' in event for event in history(url, first)) == 1


@pytest.mark.long
def test_answer_with_a_lost_reply_counts_once(open_browsers: Sit) -> None:
    ada = open_browsers("Ada")
    name = ada.take()
    lost: list[str] = []

    def lose(route: Route) -> None:
        if lost:
            return route.continue_()
        lost.append(route.request.headers["idempotency-key"])
        route.fetch()  # the server has executed it, but the browser gets no reply
        return route.abort()

    ada.page.route("**/finish", lose)
    ada.page.evaluate(
        """() => {  // the notice is gone with the next reply, perhaps before anyone looks
          const notice = document.getElementById("connection");
          const look = () => { window.noticed ||= !notice.hidden; };
          new MutationObserver(look).observe(notice, { attributes: true });
        }"""
    )
    ada.press("1")
    ada.page.wait_for_function("() => window.noticed")
    ada.sees("#done", re.compile("^1 of"))
    expect(ada.page.locator("#connection")).to_be_hidden()
    assert ada.recent_items() == [f"{name} you said: Clear"]
    ada.complaints.clear()  # a browser logs each request that fails


@pytest.mark.long
@pytest.mark.parametrize("limit", [SHORT], indirect=True)
def test_expired_reservation_is_explained(open_browsers: Sit, url: str) -> None:
    ada, bob = open_browsers("Ada"), open_browsers("Bob")
    name = ada.take()
    ada.page.get_by_label(re.compile("^Why")).fill("a thought")
    ada.sees("#over", "Nobody has taken it yet, so your answer still counts.")
    assert bob.take() == name
    ada.sees("#over", "Bob has it now. Your answer no longer counts.")
    expect(ada.page.locator("[data-label=clear]")).to_be_disabled()
    expect(ada.page.get_by_label(re.compile("^Why"))).to_have_value("a thought")
    bob.press("1")
    ada.sees("#over", "Bob has judged it meanwhile.")
    assert ada.recent_items()[0] == f"{name} time ran out; judged by Bob"
    ada.page.locator("#over-next").click()
    ada.page.wait_for_function(
        "name => document.querySelector('#item-name').textContent !== name",
        arg=name.rpartition(".")[2],
    )
    assert any('"abandoned"' in event for event in history(url, name))


@pytest.mark.long
def test_person_whose_session_ended_is_asked_to_sign_in(
    open_browsers: Sit,
) -> None:
    ada = open_browsers("Ada")
    ada.take()
    ada.page.get_by_label(re.compile("^Why")).fill("a thought")
    ada.page.get_by_role("button", name="Hand over").click()
    ada.sees("#ask")
    ada.context.clear_cookies()  # as after a restart with another secret
    ada.let_time_run_out()
    ada.sees("#door")  # the page asks what became of the item, whose time is over
    expect(ada.page.locator("#ask")).to_be_hidden()
    expect(ada.page.get_by_label("Your name")).to_be_focused()
    assert ada.recent_items() == []
    ada.complaints.clear()  # a browser logs each request that is refused


@pytest.mark.long
def test_extension_adds_time(open_browsers: Sit) -> None:
    ada = open_browsers("Ada")
    ada.take()
    expect(ada.page.locator("#left")).not_to_have_text(re.compile("^1:(30|29)$"))
    with ada.page.expect_response("**/extend") as answer:
        ada.press("e")
    assert USUAL - 2 < answer.value.json()["left"] <= USUAL
    expect(ada.page.locator("#over")).to_be_hidden()


@pytest.mark.long
def test_skipped_item_goes_to_other_people(open_browsers: Sit) -> None:
    ada, bob = open_browsers("Ada"), open_browsers("Bob")
    skipped = ada.take()
    ada.judge("s")
    assert ada.recent_items() == [f"{skipped} skipped, for others"]
    while (found := bob.take() if not bob.recent_items() else bob.item()) and len(
        bob.recent_items()
    ) < 3:
        assert found != skipped  # it is behind the others
        bob.judge("1")


@pytest.mark.long
def test_handed_over_item_goes_to_the_other_person(open_browsers: Sit) -> None:
    ada, bob = open_browsers("Ada"), open_browsers("Bob")
    name = ada.take()
    ada.press("h")
    ada.page.get_by_label("To whom?").fill("Bob")
    ada.page.get_by_role("button", name="Do it").click()
    ada.sees("#idle-text", "Handed over")
    assert bob.take() == name


@pytest.mark.long
def test_item_can_be_released_or_rejected(open_browsers: Sit, url: str) -> None:
    ada = open_browsers("Ada")
    name = ada.take()
    ada.press("b")
    ada.sees("#idle-text", "Given back")
    assert ada.take() == name
    ada.press("r")
    ada.page.get_by_label("What is wrong with it?").fill("not a docstring")
    ada.page.get_by_label("What is wrong with it?").press("Enter")
    ada.page.wait_for_function(
        "name => document.querySelector('#item-name').textContent !== name",
        arg=name.rpartition(".")[2],
    )
    with redis.Redis.from_url(url, decode_responses=True) as connection:
        assert connection.lrange("ql:f:docs-review-rejected", 0, -1) == [f"docstring-{name}"]


@pytest.mark.long
def test_signing_out_releases_the_reservation(open_browsers: Sit, url: str) -> None:
    ada = open_browsers("Ada")
    ada.take()
    ada.page.get_by_role("button", name="Sign out").click()
    ada.sees("#door")
    with redis.Redis.from_url(url) as connection:
        assert connection.zcard("ql:q:docs-review-locks") == 0


@pytest.mark.long
def test_name_with_markup_is_shown_as_text(open_browsers: Sit) -> None:
    ada = open_browsers("<img src=x onerror=alert(1)>")
    ada.take()
    ada.judge("1")
    ada.sees("#by-person", "<img src=x onerror=alert(1)>")
    assert ada.page.locator("img").count() == 0
