"""Keep every place filled with a process that works."""

from __future__ import annotations

import asyncio
import itertools
import signal
from dataclasses import dataclass, field

from aioqless.contrib.supervisor.child import Child, Command
from aioqless.log import log
from aioqless.waiting import cancel_and_wait, wait_for_event

WORN = 4  # the exit code of a process that has done its share and wants to be replaced
REFUSALS = (1, 2, 3)  # and of one that can't start as it was told
SHORTEST_PAUSE, LONGEST_PAUSE = (
    0.1,
    30.0,
)  # seconds before a process that died is replaced; doubled each time
STEADY = 60.0  # seconds of life after which earlier deaths are forgotten
# seconds after the grace period at which a roll continues though an old process still runs, and a
# silent one is killed
LATE = 5.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a supervisor looks after. `forgiving`: a process that doesn't get to its start isn't the
    end; the next roll tries again."""

    command: Command
    processes: int
    grace: float  # seconds that a process takes at most to end
    burst: bool = False
    forgiving: bool = False


@dataclass(eq=False)
class Place:
    """Where one process works at a time; beside it, in a roll, the one that follows it."""

    child: Child | None = None
    next: Child | None = None
    strikes: int = 0  # deaths in a row
    hurry: asyncio.Event = field(default_factory=asyncio.Event)  # ends a pause


class Supervisor:
    """Owns the processes. `run` returns when all have ended; whoever hears a signal calls the
    verbs."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._places = [Place() for _ in range(plan.processes)]
        self._children: set[Child] = set()
        self._taken: set[int] = set()  # the numbers of those, and of those that are being started
        self._stopping = False
        self._paused = False
        self._code = 0
        self._wanted = asyncio.Event()  # a roll

    @property
    def ready(self) -> int:
        """How many processes pop."""
        return sum(child.ready for child in self._children)

    @property
    def hung(self) -> int:
        """How many processes have been silent for too long."""
        return sum(child.hung for child in self._children)

    # What it can be told.

    def stop(self) -> None:
        """Let every process finish what it runs, and end."""
        stopping, self._stopping = self._stopping, True
        for place in self._places:
            place.hurry.set()
        self.tell(signal.SIGTERM)
        if not stopping:
            asyncio.get_running_loop().call_later(self._plan.grace + LATE, self._kill_silent)
            log.info("supervisor.shutdown_started", processes=len(self._children))

    def _kill_silent(self) -> None:
        """Processes end by themselves within their grace, unless some code keeps the interpreter to
        itself. One that only waits for Redis isn't silent."""
        for child in self._children:
            if child.silence > LATE:
                child.tell(signal.SIGKILL)
                log.error("process.killed", process=child.number, seconds=round(child.silence, 3))
        if self._children:
            asyncio.get_running_loop().call_later(LATE, self._kill_silent)

    def kill(self, code: int) -> None:
        """End every process at once, and return `code`: what they held runs elsewhere when its
        locks expire."""
        self._code = code
        self.stop()
        self.tell(signal.SIGKILL)

    def roll(self) -> None:
        """Replace every process, one after the other, each when its successor works."""
        self._wanted.set()

    def pause(self, paused: bool) -> None:
        """Let them pop no more, those to come as well; or again."""
        self._paused = paused
        self.tell(signal.SIGUSR2 if paused else signal.SIGCONT)

    def tell(self, number: signal.Signals) -> None:
        """Send all of them a signal."""
        for child in self._children:
            child.tell(number)

    # What it does.

    async def run(self) -> int:
        """Look after the processes until told to stop or until they have done all; returns the exit
        code."""
        log.info("supervisor.started", processes=len(self._places))
        rolling = asyncio.create_task(self._roll_when_told())
        async with asyncio.TaskGroup() as places:
            for place in self._places:
                places.create_task(self._keep(place))
        await cancel_and_wait(rolling)
        if not rolling.cancelled():
            rolling.result()
        self.tell(signal.SIGTERM)  # a successor that comes too late
        await asyncio.gather(*(child.ended() for child in self._children))
        log.info("supervisor.stopped", code=self._code)
        return self._code

    async def _keep(self, place: Place) -> None:
        """Have a process in this place until told to stop, or until one has done all there was to
        do."""
        while place.next or not self._stopping:
            try:
                child = place.child = place.next or await self._start(place.child)
            except OSError as error:  # no descriptors, memory or processes are left
                await self._pause(place, error)
                continue
            place.next = None
            code = await child.ended()
            if self._stopping or place.next:
                log.info(
                    "process.ended", process=child.number, code=code, seconds=round(child.age, 3)
                )
            elif code == WORN:
                log.info("process.replaced", process=child.number, seconds=round(child.age, 3))
            elif code == 0 and self._plan.burst:
                log.info(
                    "process.ended", process=child.number, code=code, seconds=round(child.age, 3)
                )
                return
            else:
                await self._bear(place, child, code)

    async def _bear(self, place: Place, child: Child, code: int) -> None:
        """A process died: wait before the next is started. One that can't even begin, with nobody
        else at work, is the end of all."""
        place.hurry.clear()
        refused = not child.began and code in REFUSALS
        if refused and not self._plan.forgiving and not self.ready:
            self._code = code
            self.stop()
            log.error("process.refused", process=child.number, code=code)
            return
        place.strikes = 0 if child.age > STEADY else place.strikes + 1
        pause = (
            min(SHORTEST_PAUSE * 2 ** (place.strikes - 1), LONGEST_PAUSE) if place.strikes else 0
        )
        if refused and self._plan.forgiving:
            pause = float("inf")  # what is wrong is in the files: the next change ends it
        log.error(
            "process.died",
            process=child.number,
            code=code,
            seconds=round(child.age, 3),
            pause=pause,
        )
        await wait_for_event(place.hurry, pause if pause < float("inf") else None)

    async def _pause(self, place: Place, error: OSError) -> None:
        place.hurry.clear()
        place.strikes += 1
        pause = min(SHORTEST_PAUSE * 2 ** (place.strikes - 1), LONGEST_PAUSE)
        log.error("process.not_started", error=str(error), pause=pause)
        await wait_for_event(place.hurry, pause)

    async def _start(self, former: Child | None = None) -> Child:
        """A process with the number, and so the name, of the one that it follows; else with the
        lowest that is free."""
        wanted = itertools.chain([former.number] if former else [], itertools.count(1))
        number = next(number for number in wanted if number not in self._taken)
        self._taken.add(number)
        try:
            child = await Child.started(number, self._plan.command, self._paused)
        except OSError:
            self._taken.discard(number)
            raise
        self._children.add(child)
        child.end.add_done_callback(lambda _: self._forget(child))
        if self._stopping:  # it was told to while this one was on its way
            child.tell(signal.SIGTERM)
        return child

    def _forget(self, child: Child) -> None:
        self._children.discard(child)
        self._taken.discard(child.number)

    async def _roll_when_told(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            log.info("supervisor.rolling")
            for place in self._places:
                if self._stopping or not await self._replace(place):
                    break
            else:
                log.info("supervisor.rolled")

    async def _replace(self, place: Place) -> bool:
        """Let a new process take the place when it works; False when it doesn't come to work: then
        the old one stays."""
        try:
            new = await self._start()
        except OSError as error:
            log.error("process.not_started", error=str(error), pause=0)
            return False
        if not await new.works():
            code = await new.ended()
            if code not in (0, WORN) and not self._stopping:
                log.error("supervisor.roll_failed", process=new.number, code=code)
                return False
            return True
        old, place.next = place.child, new
        place.hurry.set()
        if old is not None:
            old.tell(signal.SIGTERM)
            await asyncio.wait([old.end], timeout=self._plan.grace + LATE)
        return True
