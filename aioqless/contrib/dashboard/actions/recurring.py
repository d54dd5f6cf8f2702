"""What can be done to a recurring job."""

from __future__ import annotations

import msgspec

from aioqless.client.recurring import RecurringJob
from aioqless.contrib.dashboard.actions.act import Doing, Done, act
from aioqless.contrib.dashboard.page_request import address
from aioqless.contrib.encryption import opened


async def _template(doing: Doing) -> RecurringJob:
    jid = doing.text("jid")
    if (template := await doing.client.jobs.recurring(jid)) is None:
        raise ValueError(f"recurring job {jid} is gone by now")
    return template


@act("recurring-pause")
async def recurring_pause(doing: Doing) -> str:
    """Let no more of it come."""
    template = await _template(doing)
    await template.pause()
    return f"{template.klass} comes no more until it is resumed."


@act("recurring-resume")
async def recurring_resume(doing: Doing) -> str:
    """Let it come again."""
    template = await _template(doing)
    await template.resume()
    return f"{template.klass} comes again."


@act("recurring-run")
async def recurring_run(doing: Doing) -> Done:
    """Make one at once."""
    template = await _template(doing)
    jid = await template.run_now()
    return Done(
        f"{template.klass} was put into {template.queue} at once.", address("/job", jid=jid)
    )


@act("recurring-change")
async def recurring_change(doing: Doing) -> str:
    """Give it another interval or cron expression, priority, retries, data."""
    template = await _template(doing)
    changes: dict[str, object] = {}
    if template.cron is None and doing.form.get("interval"):
        changes["interval"] = doing.number("interval")
    if template.cron is not None and doing.form.get("cron"):
        changes |= {"cron": doing.text("cron").strip(), "timezone": doing.text("timezone").strip()}
    if doing.form.get("data"):
        doing.may_see_data()
        stored = opened(doing.client.store.seal, template.raw_data, template.klass)
        text = doing.board.redaction.restored(doing.text("data"), stored)
        if text.strip() != doing.board.redaction.shown(stored).strip():
            changes["data"] = msgspec.Raw(text.encode())
    if doing.form.get("priority"):
        changes["priority"] = doing.number("priority")
    await template.update(**changes)
    return f"{template.klass} was changed."


@act("recurring-off")
async def recurring_off(doing: Doing) -> Done:
    """Let no more of it come, for good."""
    template = await _template(doing)
    await template.cancel()
    return Done(f"{template.klass} recurs no more; what came of it stays.", "/recurring")
