"""Where code runs, when it isn't the loop.

threads.py     Threads      plain functions, in threads of the worker's own
processes.py   Processes    handlers with executor="process": owns the pool, hands each job to a free process
child.py       Child        one process as the worker sees it: started, given a job, told to stop, killed
inside.py                   the same process from inside: what it does with what it is given
parcels.py                  what travels between the two, and how it is packed
variables.py                which context variables travel

All keep one promise: the call returns when the code has stopped, not before.
"""

from __future__ import annotations

from aioqless.handlers import Handlers
from aioqless.worker.executors.process_pool import Processes
from aioqless.worker.executors.thread_pool import Threads
from aioqless.worker.settings import Settings

__all__ = ["Executors", "Threads"]


class Executors:
    """Owns the threads and the processes of one worker. Raises ValueError for a handler that can't
    run in a process."""

    def __init__(self, handlers: Handlers, settings: Settings) -> None:
        self.threads = Threads(settings.threads)
        self.processes = Processes(handlers, settings)

    async def aclose(self) -> None:
        """End the processes, when nothing runs any more."""
        await self.processes.aclose()
