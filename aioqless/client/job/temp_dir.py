"""A temporary directory for the files of one run."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from pathlib import Path

_UNSAFE = re.compile(r"[^\w.-]")
_MAX_JID = 60  # characters of the jid in the directory's name


class TempDir:
    """Creates an empty directory for `with` or `async with`, and deletes it with its content.

    Only this user can read it. It is created where temporary files are (`TMPDIR`).

    Args:
        jid: Jid of the job, which becomes a part of the directory's name.
    """

    def __init__(self, jid: str) -> None:
        self._prefix = f"aioqless-{_UNSAFE.sub('_', jid)[:_MAX_JID]}-"
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
        await asyncio.to_thread(self.__exit__)  # a large tree would block the event loop
