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
from aioqless.contrib.http import Role

# By the last part of the address, /do/NAME.
ACTIONS: dict[str, Action] = {
    "retry": Action(jobs.retry, "Retry job"),
    "put": Action(jobs.put_new, "Put job"),
    "put-again": Action(jobs.put_with_data, "Edit data"),
    "cancel": Action(jobs.cancel, "Delete job"),
    "move": Action(jobs.move, "Move job"),
    "priority": Action(jobs.set_priority, "Set priority"),
    "tag": Action(jobs.tag, "Add tags"),
    "untag": Action(jobs.untag, "Remove tag"),
    "track": Action(jobs.track, "Track job"),
    "untrack": Action(jobs.untrack, "Untrack job"),
    "signal": Action(jobs.signal, "Send signal"),
    "unlock": Action(jobs.unlock, "Unlock job"),
    "undepend": Action(jobs.remove_dependencies, "Remove dependencies"),
    "fail": Action(jobs.fail, "Mark job as failed"),
    "retry-all": Action(failures.retry_all, "Retry group", is_recorded=False),
    "cancel-all": Action(failures.cancel_all, "Delete group", Role.ADMIN, is_recorded=False),
    "select-retry": Action(selections.retry, "Retry jobs", is_recorded=False),
    "select-move": Action(selections.move, "Move jobs", is_recorded=False),
    "select-tag": Action(selections.tag, "Tag jobs", is_recorded=False),
    "select-priority": Action(selections.set_priority, "Set priority of jobs", is_recorded=False),
    "select-cancel": Action(selections.cancel, "Delete jobs", Role.ADMIN, is_recorded=False),
    "set-retry": Action(job_sets.retry, "Retry set"),
    "set-cancel": Action(job_sets.cancel, "Cancel set", Role.ADMIN),
    "set-close": Action(job_sets.close, "Close set"),
    "pause": Action(queues.pause, "Pause queue"),
    "resume": Action(queues.resume, "Resume queue"),
    "clear": Action(queues.clear, "Clear queue", Role.ADMIN, is_recorded=False),
    "forget": Action(queues.forget, "Remove queue", Role.ADMIN),
    "worker-pause": Action(workers.pause, "Pause worker"),
    "worker-resume": Action(workers.resume, "Resume worker"),
    "worker-stop": Action(workers.stop, "Stop worker", Role.ADMIN),
    "worker-subscribe": Action(workers.subscribe, "Add queue to worker"),
    "worker-unsubscribe": Action(workers.unsubscribe, "Remove queue from worker"),
    "worker-deregister": Action(workers.deregister, "Remove worker", Role.ADMIN),
    "recurring-pause": Action(recurring.pause, "Pause schedule"),
    "recurring-resume": Action(recurring.resume, "Resume schedule"),
    "recurring-run": Action(recurring.run_now, "Run schedule now"),
    "recurring-change": Action(recurring.update, "Change schedule"),
    "recurring-off": Action(recurring.cancel, "Delete schedule"),
    "dismiss": Action(alarms.dismiss, "Dismiss alarm", Role.READ, is_recorded=False),
    "config-set": Action(config.set_option, "Set option", Role.ADMIN),
    "config-unset": Action(config.unset_option, "Reset option", Role.ADMIN),
}

LOGINS = {"log-in": "Sign in", "log-out": "Sign out"}


def action_name(action: str) -> str:
    """Return what an action or login of the audit log is called on its button."""
    return ACTIONS[action].label if action in ACTIONS else LOGINS.get(action, action)


__all__ = ["ACTIONS", "action_name"]
