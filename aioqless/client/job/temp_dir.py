"""A directory for the time of one block, for a handler's files."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from pathlib import Path

UNSAFE = re.compile(r"[^\w.-]")
LONGEST = 60  # characters of a jid that are shown in a directory's name


class Scratch:
    """`with` or `async with`: makes an empty directory that only this user can read, and removes it
    with all it holds.

    It is where temporary files are: below the process' sandbox if it has one, where the next
    process to come removes what one that was killed has left."""

    def __init__(self, jid: str) -> None:
        self._prefix = f"aioqless-{UNSAFE.sub('_', jid)[:LONGEST]}-"
        self._path: Path | None = None

    def __enter__(self) -> Path:
        self._path = Path(tempfile.mkdtemp(prefix=self._prefix))
        return self._path

    def __exit__(self, *_: object) -> None:
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)

    async def __aenter__(self) -> Path:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.__exit__)  # of large trees, without holding up the loop
