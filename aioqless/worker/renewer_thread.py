"""Keep the heart beating in a thread of its own, and stop the runs whose locks it finds lost."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Awaitable, Callable

from redis import exceptions

from aioqless.store import ScriptStore
from aioqless.worker.lock_renewer import Heart, Told
from aioqless.worker.loop_watchdog import Pulse
from aioqless.worker.outage import Outage
from aioqless.worker.run import Run
from aioqless.worker.runner import Runner

PATIENCE = 0.5  # seconds that a run whose lock is lost may still take to hear of its own end


class Heartbeater:
    """Owns the heart's thread, and the runs whose locks were refused until they are stopped. All of
    it is called on the worker's loop."""

    def __init__(
        self,
        own: ScriptStore,
        shared: ScriptStore,
        worker: str,
        runner: Runner,
        outage: Outage,
        stuck_after: float,
    ) -> None:
        self._shared = shared
        self._runner = runner
        self._outage = outage
        self._pulse = Pulse()
        self._heart = Heart(own, worker, runner.running, self._pulse, stuck_after)
        self._refused: list[Run] = []
        self._news = asyncio.Event()
        runner.begun = self._heart.heed

    def do_beside(self, act: Callable[[ScriptStore], Awaitable[bool]]) -> None:
        """Have the heart call this, too, several times a second in its own thread; it returns
        whether it asked Redis for anything."""
        self._heart.beside = act

    def doubt(self, *jids: str) -> None:
        """Somebody said that these locks are lost: see at once whether they can still be
        renewed."""
        if here := self._runner.running.keys() & jids:
            self._heart.doubt(here)

    def doubt_all(self) -> None:
        """Somebody may have said so unheard."""
        self.doubt(*self._runner.running)

    async def run(self) -> None:
        """Beat until cancelled."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ended.add_done_callback(lambda _: self._news.set())
        self._pulse.watch()
        context = contextvars.copy_context()  # what log lines say of the worker
        thread = threading.Thread(
            target=context.run, args=(self._live, ended), name="aioqless heart", daemon=True
        )
        thread.start()
        try:
            while not ended.done():
                await self._news.wait()
                self._news.clear()
                await self._stop_the_lost()
        finally:
            self._heart.stop()
            await asyncio.wait([ended])
            thread.join()
        ended.result()

    def _live(self, ended: asyncio.Future[None]) -> None:
        """The thread. What the heart tells waits for the loop's next turn, as everything does that
        changes a run."""
        tell = ended.get_loop().call_soon_threadsafe
        told = Told(
            lost=lambda run: tell(self._lost, run),
            away=lambda error, asked: tell(self._outage.lost, error, asked),
            back=lambda: tell(self._outage.found),
        )
        with contextlib.suppress(RuntimeError):  # the worker's loop was closed before
            try:
                with contextlib.suppress(
                    asyncio.CancelledError
                ):  # it was told to stop just when it was ending
                    asyncio.run(self._heart.beat(told))
            except Exception as error:
                tell(ended.set_exception, error)
            else:
                tell(ended.set_result, None)

    def _lost(self, run: Run) -> None:
        self._refused.append(run)
        self._news.set()

    async def _stop_the_lost(self) -> None:
        """Stop runs whose lock was refused. The refusal may have overtaken, on the heart's
        connection, the reply to a run's own end; that is waited for, by asking for a later one on
        the shared connection, where replies keep their order."""
        refused, self._refused = self._refused, []
        if refused:
            with contextlib.suppress(exceptions.RedisError, TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await self._shared.connection.execute("PING")
        for run in refused:
            if not run.job.settled and not run.ended:  # what has ended is refused when it is stored
                run.stop("lost")
