"""Keeps each slot filled with a working process."""

from __future__ import annotations

import asyncio
import itertools
import signal
from dataclasses import dataclass, field

from aioqless.cli.exit_codes import RECYCLED, REFUSED, UNREACHABLE, USAGE
from aioqless.cli.status_reporter import INTERVAL
from aioqless.cli.worker_process import SHUTDOWN_MARGIN
from aioqless.contrib.supervisor.child import Child, ProcessCommand
from aioqless.runtime.log import log
from aioqless.runtime.tasks import cancel_and_wait, wait_for_event
from aioqless.worker.runner import OUTCOME_TIMEOUT

START_FAILURES = (REFUSED, USAGE, UNREACHABLE)  # exit codes of a process that can't start
# Exit codes of a graceful shutdown; by the signal if it had no handlers yet.
GRACEFUL = (0, RECYCLED, -signal.SIGTERM)
MIN_DELAY, MAX_DELAY = 0.1, 30.0  # seconds before a restart; the delay doubles each time
MOST_AFTER = 20  # ids of ended processes that a successor gets
STABLE_AFTER = 60.0  # seconds of life after which earlier failures are forgotten
# Seconds after the grace period, when processes have ended by themselves: a silent one is killed,
# and a rolling restart continues.
OVERTIME = SHUTDOWN_MARGIN + 1


@dataclass(frozen=True, kw_only=True)
class SupervisorSettings:
    """What a supervisor runs.

    Attributes:
        command: the command line of a process.
        processes: the number of processes.
        shutdown_timeout: maximum number of seconds that a process takes to end.
        burst: a process that ends by itself is not replaced.
        reload: a process that can't start doesn't end the supervisor; the next restart tries again.
    """

    command: ProcessCommand
    processes: int
    shutdown_timeout: float
    burst: bool = False
    reload: bool = False


@dataclass(eq=False)
class Slot:
    """Holds one process at a time and, in a rolling restart, its successor.

    Attributes:
        failures: number of failures in a row.
        wake: ends the delay before a restart.
    """

    child: Child | None = None
    successor: Child | None = None
    failures: int = 0
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def next_delay(self) -> float:
        """Return the seconds to wait after the latest failure."""
        return min(MIN_DELAY * 2 ** (self.failures - 1), MAX_DELAY) if self.failures else 0


class Supervisor:
    """Owns the worker processes.

    It connects to no Redis and imports no handlers. `run` returns when all processes have ended;
    the signal handlers call the other methods.
    """

    def __init__(self, settings: SupervisorSettings) -> None:
        self._settings = settings
        self._slots = [Slot() for _ in range(settings.processes)]
        self._children: set[Child] = set()
        self._numbers: set[int] = set()  # of living processes, and of those that are starting
        # the ids of the ended processes of a number, from the latest on that worked
        self._ended: dict[int, list[str]] = {}
        self._stopping = False
        self._paused = False
        self._exit_code = 0
        self._restart_requested = asyncio.Event()

    @property
    def ready(self) -> int:
        """The number of processes that take jobs."""
        return sum(child.ready for child in self._children)

    @property
    def working(self) -> int:
        """The number of processes that take jobs or are paused."""
        return sum(child.working for child in self._children)

    @property
    def hung(self) -> int:
        """The number of processes that sent no report for too long."""
        return sum(child.hung for child in self._children)

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of the processes that are alive or starting."""
        return frozenset(self._numbers)

    def stop(self) -> None:
        """Start the graceful shutdown of every process."""
        stopping, self._stopping = self._stopping, True
        for slot in self._slots:
            slot.wake.set()
        if not stopping:
            for child in self._children:
                self._end(child)
            log.info("supervisor.shutdown_started", processes=len(self._children))

    def _end(self, child: Child) -> None:
        """Start the graceful shutdown of a process, and kill it if it doesn't end in time.

        A process ends by itself, unless it is frozen or some code holds the interpreter: then it
        sends no reports. One that waits for Redis still reports, and has OUTCOME_TIMEOUT more.
        """
        child.send_signal(signal.SIGTERM)
        loop, seconds = asyncio.get_running_loop(), self._settings.shutdown_timeout + OVERTIME
        latest = loop.time() + seconds + OUTCOME_TIMEOUT
        loop.call_later(seconds, self._kill_overdue, child, latest)

    def _kill_overdue(self, child: Child, latest: float) -> None:
        loop = asyncio.get_running_loop()
        if child.exit_task.done():
            return
        if child.silence >= OVERTIME or loop.time() >= latest:
            child.send_signal(signal.SIGKILL)
            log.error("process.killed", process=child.number, seconds=round(child.silence, 3))
        else:
            loop.call_later(INTERVAL, self._kill_overdue, child, latest)

    def kill(self, exit_code: int) -> None:
        """End every process immediately, and let `run` return `exit_code`.

        Other workers run their jobs after `worker-timeout`.
        """
        self._exit_code = exit_code
        self.stop()
        self.send_signal(signal.SIGKILL)

    def request_restart(self) -> None:
        """Start a rolling restart: replace each process when its successor works."""
        self._restart_requested.set()

    def set_paused(self, paused: bool) -> None:
        """Pause or resume every process, including those that start later."""
        self._paused = paused
        self.send_signal(signal.SIGUSR2 if paused else signal.SIGCONT)

    def send_signal(self, number: signal.Signals) -> None:
        """Send every process a signal."""
        for child in self._children:
            child.send_signal(number)

    async def run(self) -> int:
        """Run the processes until the supervisor is stopped or they have nothing more to do.

        Returns:
            The exit code.
        """
        log.info("supervisor.started", processes=len(self._slots))
        restarting = asyncio.create_task(self._restart_on_request())
        async with asyncio.TaskGroup() as slots:
            for slot in self._slots:
                slots.create_task(self._keep_filled(slot))
        await cancel_and_wait(restarting)
        if not restarting.cancelled():
            restarting.result()
        for child in self._children:  # a successor that comes too late
            self._end(child)
        await asyncio.gather(*(child.wait() for child in self._children))
        log.info("supervisor.stopped", code=self._exit_code)
        return self._exit_code

    async def _keep_filled(self, slot: Slot) -> None:
        """Run a process in this slot until the supervisor stops or a burst is done."""
        while slot.successor or not self._stopping:
            try:
                child = slot.child = slot.successor or await self._start(slot.child)
            except OSError as error:  # no descriptors, memory or processes are left
                await self._wait_after_start_failure(slot, error)
                continue
            slot.successor = None
            code = await child.wait()
            seconds = round(child.age, 3)
            done = code == 0 and self._settings.burst
            if self._stopping or slot.successor or done:
                log.info("process.ended", process=child.number, code=code, seconds=seconds)
                if done and not slot.successor:
                    return
            elif code == RECYCLED:
                log.info("process.replaced", process=child.number, seconds=seconds)
            else:
                await self._wait_after_death(slot, child, code)

    async def _wait_after_death(self, slot: Slot, child: Child, code: int) -> None:
        """Wait before a dead process is replaced.

        If it couldn't start and no other process is ready, the supervisor gives up.
        """
        slot.wake.clear()
        refused = not child.has_reported and code in START_FAILURES
        if refused and not self._settings.reload and not self.ready:
            self._exit_code = code
            self.stop()
            log.error("process.start_refused", process=child.number, code=code)
            return
        slot.failures = 0 if child.age > STABLE_AFTER else slot.failures + 1
        # with reload, the error is in the sources: only their next change ends the delay
        delay = float("inf") if refused and self._settings.reload else slot.next_delay()
        log.error(
            "process.died",
            process=child.number,
            code=code,
            seconds=round(child.age, 3),
            pause=delay,
        )
        await wait_for_event(slot.wake, delay if delay < float("inf") else None)

    async def _wait_after_start_failure(self, slot: Slot, error: OSError) -> None:
        slot.wake.clear()
        slot.failures += 1
        log.error("process.start_failed", error=str(error), pause=slot.next_delay())
        await wait_for_event(slot.wake, slot.next_delay())

    async def _start(self, former: Child | None = None) -> Child:
        """Start a process with the number, and so the name, of its predecessor if it is free.

        Else it has the lowest free number.
        """
        candidates = itertools.chain([former.number] if former else [], itertools.count(1))
        number = next(number for number in candidates if number not in self._numbers)
        self._numbers.add(number)
        after = " ".join(self._ended.get(number, ()))
        try:
            child = await Child.start(number, self._settings.command, self._paused, after)
        except OSError:
            self._numbers.discard(number)
            raise
        self._children.add(child)
        child.exit_task.add_done_callback(lambda _: self._forget(child))
        if self._stopping:  # the shutdown started meanwhile
            self._end(child)
        return child

    def _forget(self, child: Child) -> None:
        if self._stopping and child.exit_task.result() not in GRACEFUL:
            self._exit_code = self._exit_code or REFUSED
        self._children.discard(child)
        self._numbers.discard(child.number)
        before = [] if child.has_worked else self._ended.get(child.number, [])
        self._ended[child.number] = [*before, child.id][-MOST_AFTER:]

    async def _restart_on_request(self) -> None:
        while True:
            await self._restart_requested.wait()
            self._restart_requested.clear()
            log.info("supervisor.restart_started")
            for slot in self._slots:
                if self._stopping or not await self._replace(slot):
                    break
            else:
                log.info("supervisor.restart_finished")

    async def _replace(self, slot: Slot) -> bool:
        """Replace the process of a slot when its successor works.

        Returns:
            False if the successor doesn't start; then the old process stays.
        """
        try:
            new = await self._start()
        except OSError as error:
            log.error("process.start_failed", error=str(error), pause=0)
            return False
        if not await new.wait_until_working():
            code = await new.wait()
            if code not in (0, RECYCLED) and not self._stopping:
                log.error("supervisor.restart_failed", process=new.number, code=code)
                return False
            return True
        old, slot.successor = slot.child, new
        slot.wake.set()
        if old is not None:
            self._end(old)
            await asyncio.wait([old.exit_task], timeout=self._settings.shutdown_timeout + OVERTIME)
        return True
