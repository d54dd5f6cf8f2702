"""Reads a job's data from the command line, a file or an editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from aioqless.errors import AioqlessError


def read_data(argument: str) -> str:
    """Return the text that an argument names: JSON itself, `-` or `@FILE`.

    Raises:
        AioqlessError: if the file can't be read.
    """
    if argument == "-":
        return sys.stdin.read()
    if not argument.startswith("@"):
        return argument
    try:
        return Path(argument[1:]).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise AioqlessError(f"the data can't be read from {argument[1:]!r}: {error}") from None


def validate_json(text: str) -> msgspec.Raw:
    """Return the text as job data.

    Raises:
        AioqlessError: if it isn't JSON, saying where.
    """
    try:
        msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeError) as error:
        raise AioqlessError(f"the data is not JSON: {error}") from None
    return msgspec.Raw(text.strip().encode())


def edit_json(text: str, name: str) -> str | None:
    """Let the user change data in $VISUAL or $EDITOR, else vi.

    Returns:
        The new text; None if it wasn't changed.

    Raises:
        AioqlessError: if the editor fails, or if the text is no JSON any more; then it names the
            file that keeps it.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    before = msgspec.json.format(text.encode(), indent=2)
    suffix = f"-{''.join(c for c in name if c.isalnum())[:32]}.json"
    descriptor, file_name = tempfile.mkstemp(prefix="aioqless-", suffix=suffix)
    path = Path(file_name)
    with os.fdopen(descriptor, "wb") as file:
        file.write(before + b"\n")
    try:
        _run_editor(editor, path)
    except AioqlessError:
        path.unlink()
        raise
    after = path.read_text("utf-8")
    try:
        same = msgspec.json.format(after.encode(), indent=2) == before
    except msgspec.DecodeError as error:
        raise AioqlessError(
            f"the text is not JSON: {error}. It is kept: aioqless edit {name} --data @{path}"
        ) from None
    path.unlink()
    return None if same else after.strip()


def _run_editor(editor: str, path: Path) -> None:
    try:
        done = subprocess.run([*shlex.split(editor), str(path)], check=False)
    except OSError as error:
        raise AioqlessError(
            f"the editor {editor!r} can't be started ({error.strerror}): set EDITOR, or use --data"
        ) from None
    if done.returncode:
        raise AioqlessError(
            f"the editor {editor!r} ended with {done.returncode}: nothing was changed"
        )
