"""Actions on the alarms of the overview."""

from __future__ import annotations

from aioqless.contrib.dashboard.actions.action import ActionRequest

MAX_DISMISSED = 50  # by a browser
MAX_KEY = 16  # characters


async def dismiss(request: ActionRequest) -> str:
    """Hide an alarm in this browser until it ends; without one, show all again."""
    dismissed = request.dashboard.dismissed
    if not (key := request.form.get("key", "")[:MAX_KEY]):
        dismissed.pop(request.browser, None)
        return "All alarms are shown."
    known = dismissed.get(request.browser, ())
    dismissed[request.browser] = (*known[1 - MAX_DISMISSED :], key)
    return "The alarm is hidden in this browser until it ends."
