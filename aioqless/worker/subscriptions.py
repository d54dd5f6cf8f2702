"""Which queues a worker serves, how many jobs of each at once, and in which order it asks them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, Self, TypeAlias, get_args

from aioqless import validation

Order: TypeAlias = Literal["ordered", "round-robin", "shuffled", "weighted"]
ORDERS: tuple[str, ...] = get_args(Order)

MOST_PER_BATCH = 1000  # queues that a pop may ask

_PATTERN = re.compile(r"[*?[]")
_WRITTEN = re.compile(r"(?P<queue>[^,=]*)(,(?P<weight>[0-9]+))?(=(?P<limit>[0-9]+))?")


@dataclass(frozen=True)
class Subscription:
    """A queue, or with `*`, `?` or `[ab]` in its name all queues that match: at most `limit` jobs
    of each at once in this worker.

    Where the order is weighted, a queue is the first to be asked `weight` times as often as one of
    weight 1. Checked when made; raises ValueError and TypeError."""

    queue: str
    limit: int | None = None
    weight: int = 1

    def __post_init__(self) -> None:
        validation.checked("queue", self.queue)
        for what, value in (
            ("limit", 1 if self.limit is None else self.limit),
            ("weight", self.weight),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(
                    f"the {what} of queue {self.queue!r} must be a whole number of 1 or more, not {value!r}"
                )

    @classmethod
    def read(cls, text: str) -> Self:
        """From how it is written on a command line: `mail`, `reports=4` (limit), `urgent,5`
        (weight), `urgent,5=4` (both)."""
        written = _WRITTEN.fullmatch(text)
        if not written:
            raise ValueError(
                f"queue {text!r} must be a name, with `,weight` and `=limit` behind it as whole numbers where they are wanted"
            )
        weight, limit = written["weight"], written["limit"]
        return cls(
            written["queue"],
            None if limit is None else int(limit),
            1 if weight is None else int(weight),
        )

    def __str__(self) -> str:
        weight = "" if self.weight == 1 else f",{self.weight}"
        return self.queue + weight + ("" if self.limit is None else f"={self.limit}")

    @property
    def is_pattern(self) -> bool:
        return bool(_PATTERN.search(self.queue))


def subscriptions(
    queues: Sequence[str | Subscription] | Mapping[str, int | None], order: str
) -> tuple[Subscription, ...]:
    """What is asked for as names, subscriptions, or names with their limits. Raises ValueError and
    TypeError."""
    if order not in ORDERS:
        raise ValueError(f"order {order!r} must be one of {', '.join(ORDERS)}")
    if isinstance(queues, str) or not queues:
        raise ValueError(f"queues must be one name or more in a tuple, not {queues!r}")
    given: Iterable[Subscription]
    if isinstance(queues, Mapping):
        given = tuple(Subscription(queue, limit) for queue, limit in queues.items())
    else:
        given = tuple(
            each if isinstance(each, Subscription) else Subscription(each) for each in queues
        )
    if len({each.queue for each in given}) < len(given):
        raise ValueError(f"queues {[each.queue for each in given]!r} names one twice")
    for each in given:
        check_weight(each, order)
    return given


def check_weight(subscription: Subscription, order: str) -> None:
    if subscription.weight != 1 and order != "weighted":
        raise ValueError(
            f"queue {subscription.queue!r} has a weight, which counts only where the order is weighted; it is {order}"
        )


class Subscriptions:
    """Owns what is subscribed, and whose turn it is. Patterns stand for those queues that were
    met."""

    def __init__(self, given: Iterable[Subscription], order: str) -> None:
        self.full: frozenset[str] = (
            frozenset()
        )  # of which no more may run here now, as far as the last batch knew
        self._given = {each.queue: each for each in given}
        self._order = order
        self._met: dict[str, None] = {}
        self._served: dict[str, Subscription] = {}
        self._last: str | None = None  # the queue that gave last
        self._heard: str | None = None  # the queue that was heard of last
        self._asked = 0
        self._resolve()

    def __contains__(self, queue: object) -> bool:
        return queue in self._served

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._given.values())

    @property
    def has_patterns(self) -> bool:
        """Whether the names of queues that come into being matter."""
        return any(each.is_pattern for each in self._given.values())

    @property
    def has_limits(self) -> bool:
        """Whether what runs of each queue matters."""
        return any(each.limit is not None for each in self._given.values())

    @property
    def script_order(self) -> str:
        """How the pop script is to go through a batch."""
        return "rotation" if self._order == "round-robin" else "ordered"

    def add(self, subscription: Subscription) -> None:
        """Serve a queue from now on, or under other terms. Raises ValueError."""
        check_weight(subscription, self._order)
        self._given[subscription.queue] = subscription
        self._resolve()

    def remove(self, queue: str) -> None:
        """Serve it no longer. Raises ValueError when it isn't subscribed by this name."""
        if queue not in self._given:
            by = self._served.get(queue)
            raise ValueError(
                f"queue {queue!r} is not subscribed"
                + (f" by its name, but by the pattern {by.queue!r}" if by else "")
            )
        del self._given[queue]
        self._resolve()

    def meet(self, queues: Iterable[str]) -> None:
        """These are the queues there are."""
        self._met = dict.fromkeys(queues)
        self._resolve()

    def hear(self, queue: str) -> bool:
        """Something is ready in a queue; returns whether it is served and may give more."""
        if self.has_patterns and queue not in self._served and queue not in self._met:
            self._met[queue] = None
            self._resolve()
        if queue not in self._served or queue in self.full:
            return False
        self._heard = queue
        return True

    def batch(self, running: Mapping[str, int]) -> list[dict[str, Any]]:
        """What the next pop is to ask, given how many jobs of each queue run here. (Without limits
        nobody need count.)"""
        rooms = {
            queue: each.limit - running.get(queue, 0)
            for queue, each in self._served.items()
            if each.limit is not None
        }
        self.full = frozenset(queue for queue, room in rooms.items() if room <= 0)
        return [
            {"queue": queue, "limit": rooms.get(queue)}
            for queue in self._portion(self._in_order())
            if queue not in self.full
        ]

    def took(self, queue: str) -> None:
        """The turn goes on behind this queue."""
        if queue in self._served:
            self._last = queue

    def _in_order(self) -> list[str]:
        queues = list(self._served)
        match self._order:
            case "shuffled":
                random.shuffle(queues)
            # the first is each with the probability of its weight, then the second of those that
            # are left, and so on
            case "weighted":
                queues.sort(
                    key=lambda queue: random.random() ** (1 / self._served[queue].weight),
                    reverse=True,
                )
            case "round-robin" if self._last in self._served:
                behind = queues.index(self._last) + 1
                return queues[behind:] + queues[:behind]
        return queues

    def _portion(self, queues: list[str]) -> list[str]:
        """Of more queues than a pop may ask, the one that was heard of, and each time others."""
        if len(queues) <= MOST_PER_BATCH:
            return queues
        self._asked = (self._asked + MOST_PER_BATCH - 1) % len(queues)
        others = (queues[self._asked :] + queues[: self._asked])[:MOST_PER_BATCH]
        if self._heard in self._served and self._heard not in others:
            others = [self._heard, *others[:-1]]
        return others

    def _resolve(self) -> None:
        """The first subscription that a queue matches counts."""
        self._served = {}
        for each in self._given.values():
            matching = (
                [queue for queue in self._met if fnmatchcase(queue, each.queue)]
                if each.is_pattern
                else [each.queue]
            )
            for queue in matching:
                self._served.setdefault(queue, each)
