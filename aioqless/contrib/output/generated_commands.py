"""The Lua commands of this extension, one typed method for each.

Generated from the headers in `lua` by `python -m tests.codegen`; don't edit.
"""
# fmt: off

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from aioqless.store import Call, ExtensionCommands
from aioqless.store.call import (
    BatchEncoder,
    encode,
    encode_optional,
    read_answers,
    read_nothing,
    read_texts,
)


class EmitRow(TypedDict):
    """A row of `emit`."""

    jid: str
    fence: int | str
    start: int
    count: int
    values: str | bytes
    ttl: int
    keep: NotRequired[str | None]


_encode_emit_batch = BatchEncoder(
    "emit", required="jid fence start count values ttl", optional="keep",
)


class OutputCommands(ExtensionCommands):
    """The commands of this extension, each to be awaited."""

    def emit(
        self, *, worker: str, now: float | None = None, batch: Sequence[EmitRow],
        request: str | None = None,
    ) -> Call[list[str | Exception]]:
        """Append to the output of running jobs."""
        argv = [encode(worker), self._encode_time(now)]
        argv += _encode_emit_batch(batch)
        return Call(
            self.send, "emit", read_answers, [encode(self.namespace)], argv, request, writes=True,
        )

    def emit_end(
        self, *, jid: str, worker: str, now: float | None = None, fence: int | str, start: int,
        values: str | bytes, ttl: int, keep: str | None = None, request: str | None = None,
    ) -> Call[None]:
        """Store how many values a run has emitted, of which Redis has refused the last ones."""
        argv = [
            encode(jid), encode(worker), self._encode_time(now), encode(fence), encode(start),
            encode(values), encode(ttl),
        ]
        if keep is not None:
            argv += [b"keep", encode(keep)]
        return Call(
            self.send, "emit_end", read_nothing, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def output(
        self, *, jid: str, position: str | None = None, latest: int | None = None,
    ) -> Call[list[str]]:
        """What the runs of a job have emitted since a position."""
        argv = [encode(jid), encode_optional(position)]
        if latest is not None:
            argv += [b"latest", encode(latest)]
        return Call(self.send, "output", read_texts, [encode(self.namespace)], argv)
