"""Source files, while somebody works on them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeAlias

from aioqless.errors import require_extra

Changes: TypeAlias = AsyncIterator[list[str]]


def changes(folder: Path, *but: Path) -> Changes:
    """The Python files below a folder that changed, each time that some did; those below `but`
    don't count. Raises MissingExtra."""
    with require_extra("reload"):
        from watchfiles import PythonFilter, awatch

    async def each() -> Changes:
        async for found in awatch(folder, watch_filter=PythonFilter(ignore_paths=but)):
            yield sorted({str(Path(path).relative_to(folder)) for _, path in found})

    return each()
