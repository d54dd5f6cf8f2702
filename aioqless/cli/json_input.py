"""Reads a job's data from the command line, a file or an editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from aioqless.cli.presentation.json_output import indent_json
from aioqless.errors import AioqlessError
from aioqless.validation import describe_json_error


def read_data(argument: str) -> str:
    """Return the text that an argument names: JSON itself, `-` or `@FILE`.

    Raises:
        ValueError: if the file can't be read.
    """
    if argument == "-":
        return sys.stdin.read()
    if not argument.startswith("@"):
        return argument
    try:
        return Path(argument[1:]).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise ValueError(f"the data can't be read from {argument[1:]!r}: {error}") from None


def validate_json(text: str) -> msgspec.Raw:
    """Return the text as job data.

    Raises:
        ValueError: if it isn't JSON, saying where.
    """
    encoded = text.encode(errors="surrogateescape")
    try:
        msgspec.json.decode(encoded)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ValueError(f"the data is not JSON: {describe_json_error(encoded, error)}") from None
    except RecursionError:
        raise ValueError("the data is nested too deeply") from None
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
    before = indent_json(text)
    suffix = f"-{''.join(c for c in name if c.isalnum())[:32]}.json"
    descriptor, file_name = tempfile.mkstemp(prefix="aioqless-", suffix=suffix)
    path = Path(file_name)
    with os.fdopen(descriptor, "wb") as file:
        file.write(before.encode(errors="backslashreplace") + b"\n")
    try:
        _run_editor(editor, path)
    except AioqlessError:
        path.unlink()
        raise
    written = path.read_bytes()
    if written.rstrip(b"\n") == before.encode(errors="backslashreplace"):
        path.unlink()
        return None
    try:
        after = written.decode()
        msgspec.json.format(written)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise AioqlessError(
            f"the text is not JSON: {error}. It is kept: aioqless edit {name} --data @{path}"
        ) from None
    path.unlink()
    return None if indent_json(after) == before else after.strip()


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
