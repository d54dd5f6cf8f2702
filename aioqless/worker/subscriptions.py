"""Which queues a worker serves, with which limits, and in which order it asks them."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias, get_args

from aioqless import validation
from aioqless.client.coverage import is_pattern, matches
from aioqless.store import PopManyRow

Order: TypeAlias = Literal["ordered", "round-robin", "shuffled", "weighted"]
ORDERS: tuple[str, ...] = get_args(Order)

MOST_PER_BATCH = 1000  # queues in one pop

_WRITTEN = re.compile(r"(?P<queue>[^,=]*)(,(?P<weight>[0-9]+))?(=(?P<limit>[0-9]+))?")


@dataclass(frozen=True)
class Subscription:
    """A queue that a worker serves, or with `*`, `?` or `[ab]` in its name all that match.

    Args:
        queue: Name or pattern.
        limit: Maximum number of jobs of each such queue at once in this worker; None: no limit.
        weight: With the order "weighted", the queue is asked first this many times as often as one
            of weight 1.

    Raises:
        ValueError: A value is out of range.
    """

    queue: str
    limit: int | None = None
    weight: int = 1

    def __post_init__(self) -> None:
        validation.check_name("queue", self.queue)
        limit = 1 if self.limit is None else self.limit
        for name, value in (("limit", limit), ("weight", self.weight)):
            validation.check_integer(f"the {name} of queue {self.queue!r}", value)

    @classmethod
    def read(cls, text: str) -> Self:
        """Parse the form of the command line.

        Args:
            text: `mail`, `reports=4` (limit), `urgent,5` (weight) or `urgent,5=4` (both).

        Raises:
            ValueError: It has none of these forms.
        """
        written = _WRITTEN.fullmatch(text)
        if not written:
            raise ValueError(
                f"queue {text!r} must be a name, optionally followed by `,weight` and `=limit` as "
                "integers" + ("; repeat -q for each queue" if "," in text else "")
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
        """Whether it stands for all queues that match."""
        return is_pattern(self.queue)

    def matches(self, queue: str) -> bool:
        """Return whether it is for a queue."""
        return matches(queue, self.queue)


def parse_subscriptions(
    queues: Sequence[str | Subscription] | Mapping[str, int | None] | None, order: str
) -> tuple[Subscription, ...]:
    """Return subscriptions from names, subscriptions, or names with their limits; none from None.

    Raises:
        ValueError: The list is empty, one is there twice, or a value is out of range.
        TypeError: A value is of the wrong type.
    """
    if order not in ORDERS:
        raise ValueError(f"order {order!r} must be one of {', '.join(ORDERS)}")
    if queues is None:
        return ()
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


def find_unserved(queues: Iterable[str], subscriptions: Sequence[Subscription]) -> tuple[str, ...]:
    """Return the queues that match none of the subscriptions."""
    return tuple(
        queue for queue in queues if not any(each.matches(queue) for each in subscriptions)
    )


def check_weight(subscription: Subscription, order: str) -> None:
    """Refuse a weight where the order ignores it; raise ValueError."""
    if subscription.weight != 1 and order != "weighted":
        raise ValueError(
            f"queue {subscription.queue!r} has a weight, which counts only where the order is "
            f"weighted; it is {order}"
        )


class Subscriptions:
    """The queues that a worker serves, and whose turn it is.

    Patterns stand for the known queues that match them.
    """

    def __init__(self, given: Iterable[Subscription], order: str) -> None:
        self.full: frozenset[str] = frozenset()  # at their limits when the last batch was made
        # How the pop script is to go through a batch.
        self.script_order = "rotation" if order == "round-robin" else "ordered"
        self._given: tuple[Subscription, ...] = ()
        self._order = order
        self._known: dict[str, None] = {}
        self._served: dict[str, Subscription] = {}
        self._limits: dict[str, int] = {}  # of those that have one
        self.has_patterns = False  # whether the names of new queues matter
        self._last: str | None = None  # the queue that the last job came from
        self._announced: str | None = None  # the queue that last became ready
        self._offset = 0  # where the next batch begins when there are too many queues
        self.set_given(given)

    def __contains__(self, queue: object) -> bool:
        return queue in self._served

    @property
    def change_by_batch(self) -> bool:
        """Whether the next batch may differ: jobs reach limits, or there are too many queues."""
        return bool(self._limits) or len(self._served) > MOST_PER_BATCH

    def set_given(self, given: Iterable[Subscription]) -> None:
        """Set what the worker serves."""
        self._given = tuple(given)
        self._resolve()

    def set_known(self, queues: Iterable[str]) -> None:
        """Set which queues there are."""
        self._known = dict.fromkeys(queues)
        self._resolve()

    def note_ready(self, queue: str) -> bool:
        """Note that a queue has a ready job; return whether it is served and below its limit."""
        if self.has_patterns and queue not in self._served and queue not in self._known:
            self._known[queue] = None
            self._resolve()
        if queue not in self._served or queue in self.full:
            return False
        self._announced = queue
        return True

    def next_batch(self, running: Iterable[str]) -> list[PopManyRow]:
        """Return what the next pop asks for, and note which queues are full.

        Args:
            running: The queue of each job that runs here.
        """
        queues = self._in_order()
        if len(queues) > MOST_PER_BATCH:
            queues = self._portion(queues)
        rooms: dict[str, int] = {}
        if self._limits:
            counts = Counter(running)
            rooms = {queue: limit - counts[queue] for queue, limit in self._limits.items()}
            self.full = frozenset(queue for queue, room in rooms.items() if room <= 0)
        return [
            {"queue": queue, "limit": rooms.get(queue)}
            for queue in queues
            if queue not in self.full
        ]

    def end_turn(self, queue: str) -> None:
        """Continue the rotation behind this queue, which a job came from."""
        if queue in self._served:
            self._last = queue

    def _in_order(self) -> list[str]:
        queues = list(self._served)
        match self._order:
            case "shuffled":
                random.shuffle(queues)
            # The first is each with the probability of its weight, then the second of those that
            # are left, and so on.
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
        """Return as many queues as a pop may ask, others each time, and the announced one."""
        self._offset = (self._offset + MOST_PER_BATCH - 1) % len(queues)
        portion = (queues[self._offset :] + queues[: self._offset])[:MOST_PER_BATCH]
        if self._announced in self._served and self._announced not in portion:
            portion = [self._announced, *portion[:-1]]
        return portion

    def _resolve(self) -> None:
        """Map each queue to the first subscription that it matches."""
        self._served.clear()
        for each in self._given:
            for queue in filter(each.matches, self._known) if each.is_pattern else [each.queue]:
                self._served.setdefault(queue, each)
        self.has_patterns = any(each.is_pattern for each in self._given)
        self._limits = {
            queue: each.limit for queue, each in self._served.items() if each.limit is not None
        }
        self.full = self.full.intersection(self._limits)
