"""What there is of a name that was given, and which one was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from aioqless.cli.presentation.formatting import plain
from aioqless.client import Client

MOST = 1000


def instead(name: str, names: Iterable[str]) -> str:
    """What to add to the news that there is none of this name: the one of these that is most like
    it, if any is."""
    alike = get_close_matches(name, list(names), 1)
    return f"; is it {plain(alike[0])} that you mean?" if alike else ""


async def unheard_of(client: Client, queue: str) -> str:
    """That nothing is known of a queue; empty for one that is known, or may be: with so many
    queues, not all are asked for."""
    known = {counts.name for counts in await client.queues(count=MOST)}
    return (
        ""
        if queue in known or len(known) == MOST
        else f"no job was ever put in {plain(queue)}{instead(queue, known)}"
    )
