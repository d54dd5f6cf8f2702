"""Actions on the configuration that all workers and clients share."""

from __future__ import annotations

from aioqless.client.config import describe_unknown, is_known
from aioqless.contrib.dashboard.actions.action import ActionRequest


async def set_option(request: ActionRequest) -> str:
    """Set an option."""
    option, value = request.text("option").strip(), request.text("value").strip()
    if not is_known(option):
        raise ValueError(
            f"{describe_unknown(option)} `aioqless config --force` stores an option of your own"
        )
    await request.client.config.set(option, value)
    return f"{option} set to {value}."


async def unset_option(request: ActionRequest) -> str:
    """Restore the default of an option."""
    option = request.text("option")
    await request.client.config.unset(option)
    return f"{option} reset to its default."
