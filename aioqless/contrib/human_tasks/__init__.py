"""People as workers: they reserve jobs for a limited time, and machines feed them and take over.

person.py        Person       a name and a session
reservation.py   Reservation  a job that is a person's for a while: extend, hand over, skip, give back, finish, fail
fate.py          Fate         what became of a job that a person had
desk.py          Desk         a queue as people work on it
api/             create_api   the same over HTTP, in JSON, which needs Starlette
"""

from aioqless.contrib.human_tasks.person import Person
from aioqless.contrib.human_tasks.reservation import Reservation, Terms
from aioqless.contrib.human_tasks.task_queue import Desk
from aioqless.contrib.human_tasks.task_status import Fate

__all__ = ["Desk", "Fate", "Person", "Reservation", "Terms"]
