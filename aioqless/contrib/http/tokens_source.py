"""Finds the tokens that the command line or the environment gives to a server."""

from __future__ import annotations

import os
from pathlib import Path

from aioqless.contrib.http.tokens import Token, read_tokens
from aioqless.errors import AioqlessError

VARIABLE = "AIOQLESS_TOKENS"


def find_tokens(file: Path | None) -> list[Token]:
    """Return the tokens of a file, else those of the environment; there may be none.

    Raises:
        ValueError: They can't be understood.
        AioqlessError: The file can't be read.
    """
    if file is not None:
        try:
            return read_tokens(file.read_text("utf-8"), str(file))
        except OSError as error:
            raise AioqlessError(f"--tokens {file}: {error.strerror}") from None
    text = os.environ.get(VARIABLE, "")
    return read_tokens(text, VARIABLE) if text.strip() else []
