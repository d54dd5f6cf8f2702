"""What all workers and clients share."""

from __future__ import annotations

from aioqless.client.config import is_known, unknown
from aioqless.contrib.dashboard.access import Role
from aioqless.contrib.dashboard.actions.act import Doing, act


@act("config-set", Role.ADMIN)
async def set_option(doing: Doing) -> str:
    """Set an option for all."""
    option, value = doing.text("option").strip(), doing.text("value").strip()
    if not is_known(option):
        raise ValueError(
            f"{unknown(option)} `aioqless config --force` stores an option of your own"
        )
    await doing.client.config.set(option, value)
    return f"{option} is {value}, for all."


@act("config-unset", Role.ADMIN)
async def unset_option(doing: Doing) -> str:
    """Go back to the default."""
    option = doing.text("option")
    await doing.client.config.unset(option)
    return f"{option} has its default again."
