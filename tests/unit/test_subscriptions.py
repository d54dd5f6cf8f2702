"""Subscriptions of a worker: validation, and the batch of a pop."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from aioqless import Settings, Subscription
from aioqless.store import PopManyRow
from aioqless.worker.context import Lifecycle
from aioqless.worker.subscriptions import MOST_PER_BATCH, Subscriptions


def names(batch: list[PopManyRow]) -> list[str]:
    return [row["queue"] for row in batch]


def served(*queues: str, order: str = "ordered") -> Subscriptions:
    return Subscriptions([Subscription.read(queue) for queue in queues], order)


# Parsing


@pytest.mark.parametrize(
    ("text", "subscription"),
    [
        ("mail", Subscription("mail")),
        ("reports=4", Subscription("reports", limit=4)),
        ("urgent,5", Subscription("urgent", weight=5)),
        ("urgent,5=4", Subscription("urgent", limit=4, weight=5)),
        ("tenant:7", Subscription("tenant:7")),
        ("mail-*", Subscription("mail-*")),
    ],
)
def test_subscription_round_trips_as_text(text: str, subscription: Subscription) -> None:
    assert Subscription.read(text) == subscription and str(subscription) == text


@pytest.mark.parametrize("text", ["a=", "a=x", "a,", "a,x", "a=4,5", "a=-1", "a=1=2", "a=1.5"])
def test_malformed_subscription_is_refused_with_the_expected_form(text: str) -> None:
    with pytest.raises(
        ValueError, match="optionally followed by `,weight` and `=limit` as integers"
    ):
        Subscription.read(text)


def test_several_queues_in_one_text_are_refused_with_the_option_to_repeat() -> None:
    with pytest.raises(ValueError, match=r"queue 'orders,mail' must .*; repeat -q for each queue"):
        Subscription.read("orders,mail")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"limit": 0}, r"the limit of queue 'mail' must be an integer >= 1 \(got 0\)"),
        ({"limit": 1.5}, r"the limit .* \(got 1.5\)"),
        ({"limit": True}, r"the limit .* \(got True\)"),
        ({"weight": 0}, r"the weight of queue 'mail' must be an integer >= 1 \(got 0\)"),
    ],
)
def test_invalid_limits_and_weights_are_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Subscription("mail", **wrong)


def test_queues_may_be_names_limits_or_subscriptions() -> None:
    assert Settings(queues=("mail", "reports")).subscriptions == (
        Subscription("mail"),
        Subscription("reports"),
    )
    assert Settings(queues={"mail": None, "reports": 4}).subscriptions == (
        Subscription("mail"),
        Subscription("reports", limit=4),
    )
    assert Settings(queues=["mail", Subscription("reports", limit=4)]).subscriptions == (
        Subscription("mail"),
        Subscription("reports", limit=4),
    )


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"queues": {}}, "queues must be one name or more"),
        ({"queues": {"mail": 0}}, "the limit of queue 'mail'"),
        ({"queues": ("mail", Subscription("mail", limit=2))}, "names one twice"),
        (
            {"queues": (Subscription("mail", weight=2),)},
            "queue 'mail' has a weight, which counts only where the order is weighted; it is "
            "ordered",
        ),
        (
            {"order": "random"},
            "order 'random' must be one of ordered, round-robin, shuffled, weighted",
        ),
    ],
)
def test_invalid_queues_are_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Settings(**settings)


# Limits


def test_queue_is_polled_for_the_rest_of_its_limit() -> None:
    assert served("mail", "reports=4").next_batch({"reports": 1, "mail": 9}) == [
        {"queue": "mail", "limit": None},
        {"queue": "reports", "limit": 3},
    ]


def test_queue_at_its_limit_is_not_polled_and_its_notifications_are_ignored() -> None:
    subscriptions = served("mail", "reports=4")
    assert names(subscriptions.next_batch({"reports": 4})) == ["mail"]
    assert not subscriptions.note_ready("reports") and subscriptions.note_ready("mail")
    assert names(subscriptions.next_batch({"reports": 3})) == ["mail", "reports"]
    assert subscriptions.note_ready("reports")


def test_limit_lowered_below_the_running_jobs_polls_nothing() -> None:
    subscriptions = served("reports=4")
    subscriptions.set_given([Subscription("reports", limit=1)])
    assert subscriptions.next_batch({"reports": 3}) == []


# Order


def test_rotation_starts_behind_the_queue_served_last() -> None:
    subscriptions = served("a", "b", "c", order="round-robin")
    assert (names(subscriptions.next_batch({})), subscriptions.script_order) == (
        ["a", "b", "c"],
        "rotation",
    )
    subscriptions.end_turn("a")
    assert names(subscriptions.next_batch({})) == ["b", "c", "a"]
    subscriptions.set_given([Subscription("b"), Subscription("c")])
    assert names(subscriptions.next_batch({})) == ["b", "c"]


@pytest.mark.parametrize(
    ("order", "queues", "shares"),
    [
        ("shuffled", ("a", "b", "c"), (1 / 3, 1 / 3, 1 / 3)),
        ("weighted", ("a,6", "b,3", "c"), (0.6, 0.3, 0.1)),
        ("weighted", ("a", "b"), (0.5, 0.5)),
    ],
)
def test_weighted_polling_puts_queues_first_in_proportion_to_their_weights(
    order: str, queues: tuple[str, ...], shares: tuple[float, ...]
) -> None:
    random.seed(7)
    subscriptions = served(*queues, order=order)
    first = Counter(names(subscriptions.next_batch({}))[0] for _ in range(2000))
    assert [first[name] / 2000 for name in "abc"[: len(shares)]] == pytest.approx(shares, abs=0.04)
    assert sorted(names(subscriptions.next_batch({}))) == list("abc"[: len(shares)]), (
        "the others follow, for when it is empty"
    )


# Patterns


def test_pattern_stands_for_the_known_matching_queues() -> None:
    subscriptions = served("urgent", "mail-*")
    assert names(subscriptions.next_batch({})) == ["urgent"]
    subscriptions.set_known(["mail-b", "post", "mail-a", "urgent"])
    assert names(subscriptions.next_batch({})) == ["urgent", "mail-b", "mail-a"]
    assert (
        "mail-a" in subscriptions and "post" not in subscriptions and "mail-*" not in subscriptions
    )


def test_forgotten_queue_is_not_polled() -> None:
    subscriptions = served("mail-*")
    subscriptions.set_known(["mail-a", "mail-b"])
    subscriptions.set_known(["mail-b"])
    assert names(subscriptions.next_batch({})) == ["mail-b"]


def test_new_matching_queue_is_served_once_it_is_known() -> None:
    subscriptions = served("mail-?", "x[12]")
    assert subscriptions.note_ready("mail-a") and subscriptions.note_ready("x2")
    assert not (
        subscriptions.note_ready("mail-ab")
        or subscriptions.note_ready("x3")
        or subscriptions.note_ready("MAIL-a")
    )
    assert names(subscriptions.next_batch({})) == ["mail-a", "x2"]


def test_first_matching_pattern_applies() -> None:
    subscriptions = served("mail-slow=1", "mail-*=5")
    subscriptions.set_known(["mail-slow", "mail-a"])
    assert subscriptions.next_batch({"mail-a": 2}) == [
        {"queue": "mail-slow", "limit": 1},
        {"queue": "mail-a", "limit": 3},
    ]


def test_queue_matched_by_a_pattern_is_not_subscribed_by_name() -> None:
    lifecycle = Lifecycle("ann", Settings(queues=["mail-*"]))
    with pytest.raises(
        ValueError,
        match=r"queue 'mail-a' is not subscribed by its name, but by the pattern 'mail-\*'",
    ):
        lifecycle.unsubscribe("mail-a")
    with pytest.raises(ValueError, match=r"queue 'post' is not subscribed$"):
        lifecycle.unsubscribe("post")
    lifecycle.unsubscribe("mail-*")
    assert lifecycle.subscriptions == ()


def test_more_queues_than_one_pop_polls_take_turns_and_a_notified_queue_is_polled_next() -> None:
    subscriptions = served("q*")
    everything = {f"q{n}" for n in range(2 * MOST_PER_BATCH + 500)}
    subscriptions.set_known(sorted(everything))
    asked: set[str] = set()
    for _ in range(4):
        asked |= set(names(subscriptions.next_batch({})))
    assert asked == everything
    for queue in ("q7", "q2400"):
        assert subscriptions.note_ready(queue)
        batch = names(subscriptions.next_batch({}))
        assert queue in batch and len(set(batch)) == len(batch) == MOST_PER_BATCH
