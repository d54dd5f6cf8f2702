"""The Lua commands of this extension, one typed method for each.

Generated from the headers in `lua` by `python -m tests.codegen`; don't edit.
"""
# fmt: off

from __future__ import annotations

from aioqless.store import Call, ExtensionCommands
from aioqless.store.call import encode, encode_optional, read_nothing, read_texts


class DurableCommands(ExtensionCommands):
    """The commands of this extension, each to be awaited."""

    def call(
        self, *, jid: str, worker: str, now: float | None = None, name: str, child: str | bytes,
        fence: int | str | None = None, detach: str | None = None, request: str | None = None,
    ) -> Call[list[str]]:
        """Put a job for a running one, once, and return how it has ended, if it has."""
        argv = [encode(jid), encode(worker), self._encode_time(now), encode(name), encode(child)]
        if fence is not None:
            argv += [b"fence", encode(fence)]
        if detach is not None:
            argv += [b"detach", encode(detach)]
        return Call(
            self.send, "call", read_texts, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def signal(
        self, *, jid: str, now: float | None = None, name: str, result: str | bytes,
        replace: str | None = None, request: str | None = None,
    ) -> Call[None]:
        """Send a value to a job, which waits for it now or later."""
        argv = [encode(jid), self._encode_time(now), encode(name), encode(result)]
        if replace is not None:
            argv += [b"replace", encode(replace)]
        return Call(
            self.send, "signal", read_nothing, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

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

    def wait(
        self, *, jid: str, worker: str, now: float | None = None, wait_kind: str, name: str,
        timeout: float | None = None, fence: int | str | None = None, accept: int | None = None,
        request: str | None = None,
    ) -> Call[list[str]]:
        """Store that a run waits, and return how the wait has ended, or how long it lasts."""
        argv = [
            encode(jid), encode(worker), self._encode_time(now), encode(wait_kind), encode(name),
            encode_optional(timeout),
        ]
        if fence is not None:
            argv += [b"fence", encode(fence)]
        if accept is not None:
            argv += [b"accept", encode(accept)]
        return Call(
            self.send, "wait", read_texts, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )
