"""Several processes of a worker: this one only looks after the others. It connects to no Redis and imports nobody's handlers.

line.py         Line         what a process says to its supervisor, and how each learns that the other is gone
child.py        Child        one process, from its start to its end
supervisor.py   Supervisor   keeps every place filled: replaces the dead, and the living one by one when told to roll
sources.py                   says when source files have changed
"""

from aioqless.supervisor.line import Line
from aioqless.supervisor.supervisor import WORN, Plan, Supervisor

__all__ = ["WORN", "Line", "Plan", "Supervisor"]
