"""Watches source files during development."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeAlias

from aioqless.errors import require_extra

Changes: TypeAlias = AsyncIterator[list[str]]


def watch_sources(folder: Path) -> Changes:
    """Return an iterator over sets of changed Python files below a folder.

    Raises:
        MissingExtra: if watchfiles is not installed.
    """
    with require_extra("reload"):
        from watchfiles import PythonFilter, awatch

    async def watch() -> Changes:
        async for changes in awatch(folder, watch_filter=PythonFilter()):
            yield sorted({str(Path(path).relative_to(folder)) for _, path in changes})

    return watch()
