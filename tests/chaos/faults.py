"""The kinds of faults: how each begins and ends."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import IO, TypeAlias

from redis.asyncio import Redis
from redis.exceptions import RedisError

from aioqless import Client, NewJob
from tests.chaos.ledger import Ledger
from tests.chaos.processes import Processes
from tests.chaos.producer import API, QUEUE, klass_of
from tests.chaos.readers import Readers
from tests.chaos.server import Server


@dataclass(eq=False)
class Stage:
    """Everything that a fault may affect."""

    server: Server
    processes: Processes
    client: Client  # connected directly to Redis, for faults that put jobs
    ledger: Ledger
    chance: random.Random
    heartbeat: float
    grace: float  # seconds of the grace period
    readers: Readers
    line: IO[bytes] | None = None  # standard input of the proxy process
    put: int = 0

    @property
    def lock_lifetime(self) -> float:
        """Return the seconds after which another worker takes over a lock that is not renewed."""
        return self.heartbeat + self.grace

    def disturb(self, word: str, number: int = 1) -> None:
        assert self.line is not None
        self.line.write(f"{word} {number}\n".encode())
        self.line.flush()

    async def add(self, how: str, seconds: float = 0.0, count: int = 1) -> list[str]:
        """Put more jobs of one kind."""
        jids = [f"stage-{self.put + number}-{how}" for number in range(count)]
        self.put += count
        self.ledger.note("offer", jids)
        with contextlib.suppress(RedisError):
            await self.client.queue(QUEUE).put_many(
                NewJob(
                    klass_of(how),
                    {"how": how, "seconds": seconds},
                    jid=jid,
                    limits=[API] if how == "throttled" else None,
                )
                for jid in jids
            )
            self.ledger.note("put", jids)
        return jids

    async def end_faults(self) -> None:
        """End all faults."""
        self.server.signal(signal.SIGCONT)
        if self.server.ended:
            await self.server.start()
        self.server.fill_disk(False)
        await self.server.until_it_answers()
        await self.server.ask("ACL", "SETUSER", "default", "+@all", "~*")
        await self.server.ask("CLIENT", "UNPAUSE")
        await self.server.ask("CONFIG", "SET", "maxmemory", "0")


Strike: TypeAlias = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    It strikes about every `pause` seconds, at random. With `through`, all connections to Redis use
    the proxy.
    """

    name: str
    what: str
    strike: Strike
    pause: float = 2.0
    through: bool = False
    clocks: bool = False  # processes have clocks that can be set
    named: bool = False  # workers have stable names
    piped: bool = False  # workers' logs go through pipes
    refuses: bool = False  # Redis refuses calls, and so output is dropped
    alone: bool = False  # not part of `together`
    max_lost: int = 5


async def nothing(stage: Stage) -> None:
    """Do nothing, for comparison."""


async def kill_worker(stage: Stage) -> None:
    stage.processes.any("worker").signal(signal.SIGKILL)


async def kill_in_bulk(stage: Stage) -> None:
    await stage.add("bulk", 0.3, 10)
    await stage.add("kill", 0.3)


async def stop_worker(stage: Stage) -> None:
    member = stage.processes.any("worker")
    member.signal(signal.SIGSTOP)
    await asyncio.sleep(2 * stage.heartbeat + stage.grace)
    member.signal(signal.SIGCONT)


async def end_worker(stage: Stage) -> None:
    stage.processes.any("worker").signal(signal.SIGTERM)


async def kill_producer(stage: Stage) -> None:
    stage.processes.any("producer").signal(signal.SIGKILL)


async def kill_redis(stage: Stage) -> None:
    stage.server.kill()
    await asyncio.sleep(stage.chance.uniform(0, 1.5))
    await stage.server.start()


async def take_redis_away(stage: Stage) -> None:
    for how in ("steps", "items", "speak"):
        await stage.add(how, 0.5, count=4)
    stage.server.kill()
    await asyncio.sleep(0.3 * 100 ** stage.chance.random())
    await stage.server.start()


async def stall_redis(stage: Stage) -> None:
    seconds = stage.chance.uniform(0.5, 1.5 * stage.lock_lifetime)
    if stage.chance.random() < 0.5:
        await stage.server.ask("DEBUG", "SLEEP", f"{seconds:.2f}")
    else:
        stage.server.signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        stage.server.signal(signal.SIGCONT)


async def kill_clients(stage: Stage) -> None:
    for kind in ("normal", "pubsub"):
        await stage.server.ask("CLIENT", "KILL", "TYPE", kind)


async def pause_clients(stage: Stage) -> None:
    seconds = stage.chance.uniform(0.5, 1.5 * stage.lock_lifetime)
    await stage.server.ask(
        "CLIENT", "PAUSE", int(seconds * 1000), stage.chance.choice(("ALL", "WRITE"))
    )
    await asyncio.sleep(seconds)


async def flush_scripts(stage: Stage) -> None:
    for _ in range(10):
        await stage.server.ask("SCRIPT", "FLUSH")


async def cut_line(stage: Stage) -> None:
    stage.disturb(stage.chance.choice(("cut_off", "cut", "tear")))


async def drop_replies(stage: Stage) -> None:
    stage.disturb("drop", stage.chance.randint(1, 5))


async def delay_replies(stage: Stage) -> None:
    stage.disturb("delay", stage.chance.randint(1, 5))


async def split_bytes(stage: Stage) -> None:
    stage.disturb("split", 100)


async def silence_line(stage: Stage) -> None:
    stage.disturb("silent", 1)
    await asyncio.sleep(stage.chance.uniform(0.5, 1.5 * stage.lock_lifetime))
    stage.disturb("silent", 0)


async def fill_clients(stage: Stage) -> None:
    try:
        async with Redis.from_url(
            stage.server.url
        ) as only:  # it keeps its connections, and then lets other clients connect again
            await only.config_set("maxclients", 1)
            await only.execute_command("CLIENT", "KILL", "SKIPME", "yes")
            await asyncio.sleep(stage.chance.uniform(0.3, stage.lock_lifetime))
            await only.config_set("maxclients", 10_000)
    except RedisError:  # another fault has replaced the limit
        if not stage.server.ended:
            await kill_redis(stage)


async def set_clocks(stage: Stage) -> None:
    for member in stage.processes.members:
        member.clock.write_text(f"{stage.chance.choice((-600, -60, 0, 60, 600)):+d}")


async def block_loop(stage: Stage) -> None:
    await stage.add("block", 2 * stage.lock_lifetime)


async def poison(stage: Stage) -> None:
    await stage.add("poison")


async def die_in_step(stage: Stage) -> None:
    await stage.add("dies", count=2)


async def end_in_cursor(stage: Stage) -> None:
    jids = await stage.add("items", 1.0, count=4 * len(stage.processes.of("worker")))
    worker = stage.processes.any("worker")
    with contextlib.suppress(TimeoutError):  # together with other faults, they may not begin
        async with asyncio.timeout(10):
            while (began := stage.processes.worker_with("position", jids)) is None:  # noqa: ASYNC110  its process is another
                await asyncio.sleep(0.02)
            worker = began
            await asyncio.sleep(stage.chance.uniform(0, 0.4))
    await stage.processes.end(worker)


async def cut_readers(stage: Stage) -> None:
    for jid in await stage.add("speak", 1.0, count=4):
        stage.readers.add(jid)
    for _ in range(5):
        await asyncio.sleep(stage.chance.uniform(0.1, 0.3))
        await stage.readers.cut()


async def throttle(stage: Stage) -> None:
    await stage.add("throttled", 0.05, count=20)
    await asyncio.sleep(stage.chance.uniform(0, 0.5))
    stage.processes.any("worker").signal(signal.SIGKILL)


async def fill_memory(stage: Stage) -> None:
    await stage.server.ask("CONFIG", "SET", "maxmemory", "1")
    await asyncio.sleep(stage.chance.uniform(0.3, stage.lock_lifetime))
    await stage.server.ask("CONFIG", "SET", "maxmemory", "0")


async def fill_disk(stage: Stage) -> None:
    """Fill the disk.

    With `appendfsync always`, the server exits when it can't write; with `everysec`, it refuses
    writes until it can.
    """
    ends = stage.chance.random() < 0.5
    await stage.server.ask("CONFIG", "SET", "appendfsync", "always" if ends else "everysec")
    stage.server.fill_disk(True)
    await asyncio.sleep(stage.chance.uniform(0.5, 2.0))
    if stage.server.ended:
        await stage.server.start()
    else:
        stage.server.fill_disk(False)


async def lose_log(stage: Stage) -> None:
    member = stage.processes.any("worker")
    if member.reader is not None:
        member.reader.kill()
        await asyncio.sleep(stage.chance.uniform(0.2, 1.5))
        stage.processes.read_log(member)


async def withdraw_permissions(stage: Stage) -> None:
    rule = stage.chance.choice(("-@scripting", "-@write", "resetkeys"))
    await stage.server.ask("ACL", "SETUSER", "default", rule)
    await asyncio.sleep(stage.chance.uniform(0.5, 1.5 * stage.lock_lifetime))
    await stage.server.ask("ACL", "SETUSER", "default", "+@all", "~*")


KINDS = (
    Kind("nothing", "no fault, for comparison", nothing, 1.0),
    Kind("kill-worker", "`kill -9` of a worker", kill_worker),
    Kind("kill-bulk", "a job of a bulk kills its worker, in the middle of it", kill_in_bulk),
    Kind(
        "kill-named",
        "the same, of workers with a stable name",
        kill_worker,
        named=True,
    ),
    Kind(
        "stop-worker",
        "SIGSTOP of a worker for longer than lock and grace period",
        stop_worker,
        1.0,
    ),
    Kind(
        "end-worker",
        "SIGTERM of a worker, which releases jobs that take longer than 1 s",
        end_worker,
    ),
    Kind(
        "poison",
        "a job that kills its worker three times (`max-lost` 2)",
        poison,
        4.0,
        max_lost=2,
    ),
    Kind(
        "throttle",
        "20 jobs whose API answers 429, each of which pauses their limit; `kill -9` of a worker",
        throttle,
        alone=True,
    ),
    Kind(
        "block-loop",
        "a handler that blocks its worker's event loop for longer than lock and grace period",
        block_loop,
        2.5,
    ),
    Kind(
        "kill-producer",
        "`kill -9` of a producer, also in the middle of a batch",
        kill_producer,
        1.5,
    ),
    Kind(
        "kill-redis",
        "`kill -9` of Redis; started again within 1.5 s from its AOF (`appendfsync always`)",
        kill_redis,
    ),
    Kind(
        "redis-away",
        "`kill -9` of Redis for 0.3 to 30 s, while jobs make steps, calls, cursors and output",
        take_redis_away,
        alone=True,
    ),
    Kind(
        "stall-redis",
        "`DEBUG SLEEP` or SIGSTOP of Redis, for up to 1.5 times lock and grace period",
        stall_redis,
    ),
    Kind("kill-clients", "`CLIENT KILL` of every connection", kill_clients, 1.0),
    Kind(
        "pause-clients",
        "`CLIENT PAUSE` of all commands or of writes, for as long as in `stall-redis`",
        pause_clients,
    ),
    Kind("flush-scripts", "`SCRIPT FLUSH`, ten in a row", flush_scripts, 1.0),
    Kind(
        "cut-line",
        "connections cut: all at once, before a request, in the middle of one",
        cut_line,
        1.0,
        through=True,
    ),
    Kind(
        "drop-replies",
        "up to 5 replies dropped after their requests were executed",
        drop_replies,
        1.0,
        through=True,
    ),
    Kind("delay-replies", "up to 5 replies delayed by 1.5 s", delay_replies, 1.5, through=True),
    Kind(
        "split-bytes", "requests and replies arrive in small pieces", split_bytes, 1.0, through=True
    ),
    Kind(
        "silence-line",
        "a proxy accepts connections and does not answer, for as long as in `stall-redis`",
        silence_line,
        1.5,
        through=True,
    ),
    Kind("fill-clients", "`maxclients` reached, all connections ended", fill_clients),
    Kind(
        "set-clocks",
        "clocks of processes set forward or back by up to 10 minutes",
        set_clocks,
        1.0,
        clocks=True,
    ),
    Kind("fill-memory", "`maxmemory` reached", fill_memory, refuses=True),
    Kind(
        "fill-disk",
        "the AOF can't grow, as on a full disk; `always` and `everysec` in turn",
        fill_disk,
        2.5,
        refuses=True,
    ),
    Kind(
        "lose-log",
        "the reader of a worker's log is killed, and replaced within 1.5 s",
        lose_log,
        1.0,
        piped=True,
    ),
    Kind(
        "withdraw-permissions",
        "the Redis user loses scripts, writes or keys, for as long as in `stall-redis`",
        withdraw_permissions,
        alone=True,
        refuses=True,
    ),
    Kind(
        "die-in-step",
        "a worker that dies between the effect of a step and storing it",
        die_in_step,
    ),
    Kind(
        "end-in-cursor",
        "SIGTERM of a worker in the loops of cursors",
        end_in_cursor,
    ),
    Kind(
        "cut-readers",
        "readers of output cut off in mid-stream, and `kill -9` of a worker",
        cut_readers,
    ),
)
TOGETHER = Kind(
    "together",
    "all of these at random, two kinds at a time",
    kill_worker,
    1.0,
    through=True,
    clocks=True,
    piped=True,
    refuses=True,
    max_lost=20,
)
