"""Actions on the alarms of the overview."""

from __future__ import annotations

from aioqless.contrib.dashboard.actions.action import ActionRequest

MAX_DISMISSED = 50  # by a browser
MAX_KEY = 16  # characters of a key, several of which have spaces between them


async def dismiss(request: ActionRequest) -> str:
    """Hide alarms in this browser until they end; without any, show all again."""
    dismissed = request.dashboard.dismissed
    keys = [key[:MAX_KEY] for key in request.form.get("key", "").split()[:MAX_DISMISSED]]
    if not keys:
        dismissed.pop(request.browser, None)
        return "All alarms are shown."
    known = dismissed.get(request.browser, ())
    dismissed[request.browser] = (*known, *keys)[-MAX_DISMISSED:]
    if len(keys) > 1:
        return "The alarms are hidden in this browser until they end."
    return "The alarm is hidden in this browser until it ends."
