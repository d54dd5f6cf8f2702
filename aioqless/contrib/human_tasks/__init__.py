"""Human tasks: people reserve jobs for a limited time; machines put them and process the answers.

task_queue.py   TaskQueue    a queue that people work on
reservation.py  Reservation  a job that a person holds: extend, hand over, skip, finish, fail ...
task_status.py  TaskStatus   what became of a job that a person held
person.py       Person       a name and a session
generated_commands.py        the scripts in lua/
api/            task_router  the same over HTTP, in JSON (aioqless[web])
"""

from aioqless.contrib.human_tasks.person import Person
from aioqless.contrib.human_tasks.reservation import Reservation, ReservationPolicy
from aioqless.contrib.human_tasks.task_queue import TaskQueue
from aioqless.contrib.human_tasks.task_status import TaskStatus

__all__ = ["Person", "Reservation", "ReservationPolicy", "TaskQueue", "TaskStatus"]
