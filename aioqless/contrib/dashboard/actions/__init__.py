"""Acts: what can be done, each with the role that it takes. An act does one thing and says in a
sentence what it did.

act.py        what an act is, and what it is given
jobs.py       retry, run again with other data, cancel, move, priority, tags, track, time out, dependencies
groups.py     retry all, cancel all of a failure group
queues.py     pause, unpause, clear, forget
workers.py    pause, resume, stop, subscribe, unsubscribe, take off the list
recurring.py  pause, resume, run now, change, cancel
config.py     set, unset
"""

from aioqless.contrib.dashboard.actions.act import ACTS, Doing
from aioqless.contrib.dashboard.actions.config import set_option, unset_option
from aioqless.contrib.dashboard.actions.groups import cancel_all, retry_all
from aioqless.contrib.dashboard.actions.jobs import cancel, move, put_again, retry, track
from aioqless.contrib.dashboard.actions.queues import clear, forget, pause, unpause
from aioqless.contrib.dashboard.actions.recurring import recurring_off, recurring_run
from aioqless.contrib.dashboard.actions.workers import worker_quiet, worker_stop

__all__ = [
    "ACTS",
    "Doing",
    "cancel",
    "cancel_all",
    "clear",
    "forget",
    "move",
    "pause",
    "put_again",
    "recurring_off",
    "recurring_run",
    "retry",
    "retry_all",
    "set_option",
    "track",
    "unpause",
    "unset_option",
    "worker_quiet",
    "worker_stop",
]
