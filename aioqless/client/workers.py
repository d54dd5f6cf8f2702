"""Workers, as Redis knows them."""

from __future__ import annotations

from typing import Any

from aioqless.scripts import Scripts


class Workers:
    """Workers as Redis knows them: by pops and heartbeats."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def counts(self) -> list[dict[str, Any]]:
        """[{name, jobs, stalled}], last seen first."""
        counts: list[dict[str, Any]] = await self._scripts("workers")
        return counts

    async def jobs(self, name: str) -> dict[str, list[str]]:
        """{jobs, stalled}: the jids that a worker holds, and those of them whose lock ran out."""
        held: dict[str, list[str]] = await self._scripts("workers", worker=name)
        return held

    async def deregister(self, *workers: str) -> None:
        """Take workers off the list of those known."""
        await self._scripts("deregister", workers=workers)
