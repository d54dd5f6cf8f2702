"""Request ids, by which a script recognizes a call that is sent again."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager


class RequestIds:
    """Makes ids of the form `line:number`: a line has one request at a time and numbers them.

    Redis keeps the latest answer of each line. There are as many lines as calls were ever under way
    at once. Owns the free lines.
    """

    def __init__(self) -> None:
        self._name = secrets.token_hex(6)
        self._numbers: dict[int, int] = {}
        self._free: list[int] = []

    @contextmanager
    def reserve(self) -> Iterator[str]:
        """Reserve an id while the block is entered."""
        line = self._free.pop() if self._free else len(self._numbers)
        self._numbers[line] = self._numbers.get(line, 0) + 1
        try:
            yield f"{self._name}.{line}:{self._numbers[line]}"
        finally:
            self._free.append(line)
