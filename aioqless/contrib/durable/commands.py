"""The Lua commands of this extension, one typed method for each.

Generated from the headers in `lua` by `python -m tests.codegen`; don't edit.
"""
# fmt: off

from __future__ import annotations

from aioqless.store import Call, ExtensionCommands
from aioqless.store.call import encode, read_nothing, read_texts


class DurableCommands(ExtensionCommands):
    """The commands of this extension, each to be awaited."""

    def step(
        self, *, jid: str, worker: str, now: float | None = None, kind: str, name: str,
        result: str | bytes, fence: int | str | None = None, request: str | None = None,
    ) -> Call[None]:
        """Store what a run has done, so that later runs need not do it again."""
        argv = [
            encode(jid), encode(worker), self._encode_time(now), encode(kind), encode(name),
            encode(result),
        ]
        if fence is not None:
            argv += [b"fence", encode(fence)]
        return Call(
            self.send, "step", read_nothing, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def steps(self, *, jid: str) -> Call[list[str]]:
        """What the runs of a job have stored for later runs."""
        argv = [encode(jid)]
        return Call(self.send, "steps", read_texts, [encode(self.namespace)], argv)
