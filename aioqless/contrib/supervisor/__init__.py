"""Worker processes: several of them, where each works, and how each tells that it is well.

supervisor.py   Supervisor   keeps every place filled: replaces the dead, and the living one by one when told to roll. It connects to
                             no Redis and imports nobody's handlers
child.py        Child        one process, from its start to its end
line.py         Line         what a process says to its supervisor, and how each learns that the other is gone
sources.py                   says when source files have changed
sandbox.py                   a directory of its own for each process
health.py                    whether a process is alive and ready, over HTTP
"""

from aioqless.contrib.supervisor.supervisor import WORN, Plan, Supervisor
from aioqless.contrib.supervisor.supervisor_pipe import Line

__all__ = ["WORN", "Line", "Plan", "Supervisor"]
