"""The Lua commands of this extension, one typed method for each.

Generated from the headers in `lua` by `python -m tests.codegen`; don't edit.
"""
# fmt: off

from __future__ import annotations

from collections.abc import Sequence

from aioqless.store import Call, ExtensionCommands, Json
from aioqless.store.call import encode, read_json, read_nothing


class HttpCommands(ExtensionCommands):
    """The commands of this extension, each to be awaited."""

    def session_keep(
        self, *, id: str, proof: str, seconds: float, request: str | None = None,
    ) -> Call[None]:
        """Store a session."""
        argv = [b"keep", encode(id), encode(proof), encode(seconds)]
        return Call(
            self.send, "session", read_nothing, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def session_read(self, *, ids: Sequence[str] = (), request: str | None = None) -> Call[Json]:
        """Return the proofs of sessions."""
        argv = [b"read", *map(encode, ids), b""]
        return Call(
            self.send, "session", read_json, [encode(self.namespace)], argv, request, writes=True,
        )

    def session_drop(self, *, id: str, request: str | None = None) -> Call[None]:
        """Delete a session."""
        argv = [b"drop", encode(id)]
        return Call(
            self.send, "session", read_nothing, [encode(self.namespace)], argv, request,
            writes=True,
        )
