"""Supervises worker processes: restart on crash, rolling restart, shutdown.

`aioqless worker -w N` runs it. Reload on changed source files takes an extra:
`pip install "aioqless[reload]"`.

run.py             runs a supervisor as the main program of a process
supervisor.py      keeps each slot filled with a working process
child.py           one process, from its start to its end
reload_watcher.py  reports changed source files
"""

from aioqless.contrib.supervisor.supervisor import Supervisor, SupervisorSettings

__all__ = ["Supervisor", "SupervisorSettings"]
