"""Actions on a recurring job."""

from __future__ import annotations

import asyncio

import msgspec

from aioqless.client.put_options import RecurringChanges
from aioqless.client.recurring import RecurringJob
from aioqless.contrib.dashboard.actions.action import ActionRequest, Redirect
from aioqless.contrib.dashboard.page_request import address


async def pause(request: ActionRequest) -> str:
    """Pause a recurring job."""
    template = await _template(request)
    await template.pause()
    return f"Schedule {template.jid} paused."


async def resume(request: ActionRequest) -> str:
    """Resume a paused recurring job."""
    template = await _template(request)
    await template.resume()
    return f"Schedule {template.jid} resumed."


async def run_now(request: ActionRequest) -> Redirect:
    """Put an instance of a recurring job now."""
    template = await _template(request)
    jid = await template.run_now()
    message = f"{template.klass} enqueued in {template.queue}."
    return Redirect(message, address("/job", jid=jid))


async def update(request: ActionRequest) -> str:
    """Change a recurring job's interval or cron expression, priority or data."""
    template = await _template(request)
    changes: RecurringChanges = {}
    if template.cron is None and request.form.get("interval"):
        changes["every"] = request.number("interval")
    if template.cron is not None and request.form.get("cron"):
        changes["cron"] = request.text("cron").strip()
        changes["timezone"] = request.text("timezone").strip()
    if request.form.get("data"):
        request.check_may_see_data()
        redaction = request.dashboard.redaction
        stored = template.text
        text = await asyncio.to_thread(redaction.restore, request.text("data"), stored)
        if text.strip() != (await asyncio.to_thread(redaction.format, stored)).strip():
            changes["data"] = msgspec.Raw(text.encode())
    if request.form.get("priority"):
        changes["priority"] = request.number("priority")
    await template.update(**changes)
    return f"Schedule {template.jid} changed."


async def cancel(request: ActionRequest) -> Redirect:
    """Delete a recurring job; its instances are not affected."""
    template = await _template(request)
    await template.cancel()
    return Redirect(f"Schedule {template.jid} deleted. Its jobs stay.", "/recurring")


async def _template(request: ActionRequest) -> RecurringJob:
    jid = request.text("jid")
    if (template := await request.client.recurring.get(jid)) is None:
        raise ValueError(f"recurring job {jid} no longer exists")
    return template
