"""What is given on the command line for a job's data, and which jobs are meant."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from aioqless.errors import AioqlessError


def text_of(given: str) -> str:
    """Data as given: JSON itself, `-` for what comes in, `@path` for a file. Raises
    AioqlessError."""
    if given == "-":
        return sys.stdin.read()
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text("utf-8")
    except (OSError, UnicodeError) as wrong:
        raise AioqlessError(f"the data can't be read from {given[1:]!r}: {wrong}") from None


def checked(text: str) -> msgspec.Raw:
    """Data as they are sent. Raises AioqlessError saying where the text isn't JSON."""
    try:
        msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeError) as wrong:
        raise AioqlessError(f"the data is not JSON: {wrong}") from None
    return msgspec.Raw(text.strip().encode())


def edited(text: str, name: str) -> str | None:
    """The data after somebody changed them in $VISUAL or $EDITOR, else vi; None if nothing was.
    What isn't JSON is kept in its file, whose name the AioqlessError says."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    before = msgspec.json.format(text.encode(), indent=2)
    descriptor, place = tempfile.mkstemp(
        prefix="aioqless-", suffix=f"-{''.join(c for c in name if c.isalnum())[:32]}.json"
    )
    path = Path(place)
    with os.fdopen(descriptor, "wb") as file:
        file.write(before + b"\n")
    try:
        ended = subprocess.run([*shlex.split(editor), place], check=False)
    except OSError as wrong:
        path.unlink()
        raise AioqlessError(
            f"the editor {editor!r} can't be started ({wrong.strerror}): set EDITOR, or say --data"
        ) from None
    if ended.returncode:
        path.unlink()
        raise AioqlessError(
            f"the editor {editor!r} ended with {ended.returncode}: nothing was changed"
        )
    after = path.read_text("utf-8")
    try:
        same = msgspec.json.format(after.encode(), indent=2) == before
    except msgspec.DecodeError as wrong:
        raise AioqlessError(
            f"what you wrote is not JSON: {wrong}. It is kept: aioqless edit {name} --data @{place}"
        ) from None
    path.unlink()
    return None if same else after.strip()
