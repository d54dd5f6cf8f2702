"""Actions: what users can do. Each does one thing and returns a sentence that says what it did.

action.py     Action, ActionRequest
jobs.py       actions on a job
failures.py   actions on a failure group
job_sets.py   actions on a job set
selections.py actions on all jobs that a search has found
queues.py     actions on a queue
workers.py    actions on a worker
recurring.py  actions on a recurring job
alarms.py     alarms of the overview
config.py     configuration
"""

from aioqless.contrib.dashboard.access import Role
from aioqless.contrib.dashboard.actions import (
    alarms,
    config,
    failures,
    job_sets,
    jobs,
    queues,
    recurring,
    selections,
    workers,
)
from aioqless.contrib.dashboard.actions.action import Action

# By the last part of the address, /do/NAME.
ACTIONS: dict[str, Action] = {
    "retry": Action(jobs.retry),
    "put": Action(jobs.put_new),
    "put-again": Action(jobs.put_with_data),
    "cancel": Action(jobs.cancel),
    "move": Action(jobs.move),
    "priority": Action(jobs.set_priority),
    "tag": Action(jobs.tag),
    "untag": Action(jobs.untag),
    "track": Action(jobs.track),
    "untrack": Action(jobs.untrack),
    "signal": Action(jobs.signal),
    "unlock": Action(jobs.unlock),
    "undepend": Action(jobs.remove_dependencies),
    "fail": Action(jobs.fail),
    "retry-all": Action(failures.retry_all, is_recorded=False),
    "cancel-all": Action(failures.cancel_all, Role.ADMIN, is_recorded=False),
    "select-retry": Action(selections.retry, is_recorded=False),
    "select-move": Action(selections.move, is_recorded=False),
    "select-tag": Action(selections.tag, is_recorded=False),
    "select-priority": Action(selections.set_priority, is_recorded=False),
    "select-cancel": Action(selections.cancel, Role.ADMIN, is_recorded=False),
    "set-retry": Action(job_sets.retry),
    "set-cancel": Action(job_sets.cancel, Role.ADMIN),
    "set-close": Action(job_sets.close),
    "pause": Action(queues.pause),
    "resume": Action(queues.resume),
    "clear": Action(queues.clear, Role.ADMIN, is_recorded=False),
    "forget": Action(queues.forget, Role.ADMIN),
    "worker-pause": Action(workers.pause),
    "worker-resume": Action(workers.resume),
    "worker-stop": Action(workers.stop, Role.ADMIN),
    "worker-subscribe": Action(workers.subscribe),
    "worker-unsubscribe": Action(workers.unsubscribe),
    "worker-deregister": Action(workers.deregister, Role.ADMIN),
    "recurring-pause": Action(recurring.pause),
    "recurring-resume": Action(recurring.resume),
    "recurring-run": Action(recurring.run_now),
    "recurring-change": Action(recurring.update),
    "recurring-off": Action(recurring.cancel),
    "dismiss": Action(alarms.dismiss, Role.READ, is_recorded=False),
    "config-set": Action(config.set_option, Role.ADMIN),
    "config-unset": Action(config.unset_option, Role.ADMIN),
}

__all__ = ["ACTIONS"]
