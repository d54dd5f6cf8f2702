"""How the cost of a call grows: with waiting jobs, queues, idle workers, data and dependents.

Instructions of the server, counted by callgrind, which the load of the machine doesn't change.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from redis import Redis

from tests.bench.instructions import DATA, Arguments, Called, Counted

TURNS = 20
MANY = 1_000  # jobs of a call
Row: TypeAlias = dict[str, int]  # the instructions of each step


def put_jobs(server: Called, count: int, queue: str = "q", **job: object) -> None:
    """Put jobs by calls for many."""
    for start in range(0, count, MANY):
        jids = range(start, min(count, start + MANY))
        rows = [
            {"jid": f"{queue}{jid:022x}", "klass": "Greet", "data": DATA, **job} for jid in jids
        ]
        server.call("put_many", None, {"queue": queue, "batch": rows})


@contextmanager
def counted(fill: Callable[[Called], None] = lambda _: None) -> Iterator[Counted]:
    """Yield a server that has what `fill` puts, which a server without callgrind takes in."""
    with tempfile.TemporaryDirectory(prefix="aioqless-bench-") as folder:
        plain = Called(Path(folder))
        fill(plain)
        plain.redis.save()
        plain.end()
        server = Counted(Path(folder))
        try:
            yield server
        finally:
            server.end()


def pop(server: Called, *queues: str) -> list[tuple[str, str]]:
    """Pop a job; return the jid and the fence of what came."""
    batch = [{"queue": queue} for queue in queues]
    order: Arguments = {"worker": "ann", "count": 1, "order": "ordered", "batch": batch}
    rows, *_ = server.call("pop_many", None, order)
    return [(row[0].decode(), row[9].decode()) for row in rows]


def complete(server: Called, jid: str, fence: str) -> None:
    row = {"jid": jid, "queue": "q", "fence": fence}
    server.call("complete_many", None, {"worker": "ann", "batch": [row]})


def measure_life(server: Counted, data: str = DATA) -> Row:
    """Return what a put, a pop and a completion take, the mean of some."""
    job: Arguments = {"queue": "q", "klass": "Greet", "data": data}
    for turn in range(-2, TURNS):
        if turn == 0:
            server.count()
        server.call("put", None, {**job, "jid": f"p{turn + 2}"})
    row = {"put": server.count() // TURNS}
    held = [pop(server, "q")[0] for _ in range(2)]
    server.count()
    held += [pop(server, "q")[0] for _ in range(TURNS)]
    row["pop"] = server.count() // TURNS
    for turn, (jid, fence) in enumerate(held):
        if turn == 2:
            server.count()
        complete(server, jid, fence)
    return row | {"complete": server.count() // TURNS}


def of_waiting_jobs(count: int) -> Row:
    with counted(lambda plain: put_jobs(plain, count)) as server:
        return measure_life(server)


def of_data(size: int) -> Row:
    with counted() as server:
        return measure_life(server, '"' + "x" * (size - 2) + '"')


def of_queues(count: int) -> Row:
    """The queues of a worker have no job, except that one waits in the last for the pop."""
    names = [*(f"empty{number}" for number in range(count - 1)), "q"]
    with counted(lambda plain: put_jobs(plain, TURNS + 2)) as server:
        pop(server, *names)
        server.count()
        for _ in range(TURNS):
            pop(server, *names)
        row = {"pop": server.count() // TURNS}
        pop(server, *names)
        server.call("ready", None, {"queues": names})
        server.count()
        for _ in range(TURNS):
            server.call("ready", None, {"queues": names})
        return row | {"look of an idle worker": server.count() // TURNS}


def of_idle_workers(count: int) -> Row:
    """Each hears of a put into an empty queue, and of the pop that empties it again.

    How many of them pop without a job is measured by `idle_workers`.
    """
    with counted() as server:
        listeners = []
        for _ in range(count):
            listener = Redis(port=server.port).pubsub()
            listener.subscribe("ql:x:ready")
            listener.get_message(timeout=60)
            listeners.append(listener)
        row = {"put into an empty queue": 0, "pop that empties it": 0}
        for turn in range(-2, TURNS):
            if turn == 0:
                row = dict.fromkeys(row, 0)
            server.count()
            put_one(server, turn + 2)
            row["put into an empty queue"] += server.count() // TURNS
            pop(server, "q")
            row["pop that empties it"] += server.count() // TURNS
        return row


def put_one(server: Called, number: int) -> None:
    server.call("put", None, {"queue": "q", "klass": "Greet", "data": DATA, "jid": f"p{number}"})


def of_dependents(count: int) -> Row:
    """A job completes that others wait for: some are released at once, the others in portions."""
    with counted(lambda plain: put_parent(plain, count)) as server:
        # The first calls compile the scripts.
        server.call("put", None, {"queue": "q", "jid": "p", "klass": "Greet", "data": DATA})
        held = sorted(pop(server, "q") + pop(server, "q"))
        complete(server, *held[0])
        server.call("agenda", None, {})
        server.count()
        complete(server, *held[1])
        row = {"complete": server.count()}
        portions = [0]
        while server.redis.zrange("ql:x:agenda", "-inf", 1, byscore=True):
            server.call("agenda", None, {})
            portions.append(server.count())
        return row | {
            "longest portion": max(portions),
            "a dependent": (row["complete"] + sum(portions)) // count,
        }


def put_parent(server: Called, count: int) -> None:
    put_jobs(server, 1)
    put_jobs(server, count, "child", depends=f'["q{0:022x}"]')


GROWTH: dict[str, tuple[Callable[[int], Row], list[int]]] = {
    "waiting jobs": (of_waiting_jobs, [10, 10_000, 100_000, 1_000_000]),
    "queues of a worker": (of_queues, [1, 10, 100, 1_000]),
    "idle workers": (of_idle_workers, [1, 10, 100, 1_000]),
    "bytes of data": (of_data, [100, 1_000, 10_000, 100_000, 1_000_000]),
    "dependents": (of_dependents, [1, 10, 100, 1_000, 10_000, 100_000]),
}


def main() -> None:
    """Print a table for each kind of growth, in thousands of instructions."""
    for kind, (measured, counts) in GROWTH.items():
        for index, count in enumerate(counts):
            row = measured(count)
            if index == 0:
                print(f"\n| {kind} | {' | '.join(row)} |\n|{'---|' * (len(row) + 1)}")
            print(f"| {count:,} | {' | '.join(f'{n / 1000:,.0f}' for n in row.values())} |")


if __name__ == "__main__":
    main()
