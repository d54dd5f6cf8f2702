"""The Lua commands of this extension, one typed method for each.

Generated from the headers in `lua` by `python -m tests.codegen`; don't edit.
"""
# fmt: off

from __future__ import annotations

from collections.abc import Sequence

from aioqless.store import Call, ExtensionCommands, Json
from aioqless.store.call import encode, encode_optional, read_json


class ForeignQueuesCommands(ExtensionCommands):
    """The commands of this extension, each to be awaited."""

    def import_queue(
        self, *, prefix: str, into: str, now: float | None = None, first_retry: int | None = None,
        queue: str, side: str, count: int, request: str | None = None,
    ) -> Call[Json]:
        """Import from a foreign queue."""
        argv = [
            encode(prefix), encode(into), self._encode_time(now), encode_optional(first_retry),
            b"queue", encode(queue), encode(side), encode(count),
        ]
        return Call(
            self.send, "import", read_json, [encode(self.namespace)], argv, request, writes=True,
        )

    def import_schedule(
        self, *, prefix: str, into: str, now: float | None = None, first_retry: int | None = None,
        offset: int, count: int, queues: Sequence[str] = (), request: str | None = None,
    ) -> Call[Json]:
        """Import scheduled entries."""
        argv = [
            encode(prefix), encode(into), self._encode_time(now), encode_optional(first_retry),
            b"schedule", encode(offset), encode(count), *map(encode, queues), b"",
        ]
        return Call(
            self.send, "import", read_json, [encode(self.namespace)], argv, request, writes=True,
        )

    def import_retry(
        self, *, prefix: str, into: str, now: float | None = None, first_retry: int | None = None,
        offset: int, count: int, queues: Sequence[str] = (), request: str | None = None,
    ) -> Call[Json]:
        """Import entries that wait for a retry."""
        argv = [
            encode(prefix), encode(into), self._encode_time(now), encode_optional(first_retry),
            b"retry", encode(offset), encode(count), *map(encode, queues), b"",
        ]
        return Call(
            self.send, "import", read_json, [encode(self.namespace)], argv, request, writes=True,
        )

    def import_queues(
        self, *, prefix: str, into: str, now: float | None = None, first_retry: int | None = None,
        request: str | None = None,
    ) -> Call[Json]:
        """List the foreign queues."""
        argv = [
            encode(prefix), encode(into), self._encode_time(now), encode_optional(first_retry),
            b"queues",
        ]
        return Call(
            self.send, "import", read_json, [encode(self.namespace)], argv, request, writes=True,
        )

    def import_dead(
        self, *, prefix: str, into: str, now: float | None = None, first_retry: int | None = None,
        request: str | None = None,
    ) -> Call[Json]:
        """List the nodes of exq whose heartbeats have stopped."""
        argv = [
            encode(prefix), encode(into), self._encode_time(now), encode_optional(first_retry),
            b"dead",
        ]
        return Call(
            self.send, "import", read_json, [encode(self.namespace)], argv, request, writes=True,
        )

    def import_backup(
        self, *, prefix: str, into: str, now: float | None = None, first_retry: int | None = None,
        node: str, count: int, queues: Sequence[str] = (), request: str | None = None,
    ) -> Call[Json]:
        """Import what a node of exq took from its queues and didn't finish."""
        argv = [
            encode(prefix), encode(into), self._encode_time(now), encode_optional(first_retry),
            b"backup", encode(node), encode(count), *map(encode, queues), b"",
        ]
        return Call(
            self.send, "import", read_json, [encode(self.namespace)], argv, request, writes=True,
        )
