"""The Lua commands of this extension, one typed method for each.

Generated from the headers in `lua` by `python -m tests.codegen`; don't edit.
"""
# fmt: off

from __future__ import annotations

from aioqless.store import Call, ExtensionCommands, Json
from aioqless.store.call import encode, read_json, read_number, read_text


class HumanTasksCommands(ExtensionCommands):
    """The commands of this extension, each to be awaited."""

    def extend(
        self, *, jid: str, worker: str, limit: float, now: float | None = None,
        fence: int | str | None = None, request: str | None = None,
    ) -> Call[float]:
        """Set a new time limit for a reservation, counted from now."""
        argv = [encode(jid), encode(worker), encode(limit), self._encode_time(now)]
        if fence is not None:
            argv += [b"fence", encode(fence)]
        return Call(
            self.send, "extend", read_number, [encode(self.namespace)], argv, request, writes=True,
        )

    def hand_over(
        self, *, jid: str, worker: str, to: str, limit: float, now: float | None = None,
        fence: int | str | None = None, request: str | None = None,
    ) -> Call[float]:
        """Pass a reservation to another person, whose next `reserve` returns it."""
        argv = [encode(jid), encode(worker), encode(to), encode(limit), self._encode_time(now)]
        if fence is not None:
            argv += [b"fence", encode(fence)]
        return Call(
            self.send, "hand_over", read_number, [encode(self.namespace)], argv, request,
            writes=True,
        )

    def reservation(self, *, queue: str, worker: str, now: float | None = None) -> Call[Json]:
        """The job that a person's session has reserved in a queue."""
        argv = [encode(worker), self._encode_time(now)]
        return Call(self.send, "reservation", read_json, [self._encode_queue(queue)], argv)

    def reserve(
        self, *, queue: str, person: str, worker: str, limit: float, now: float | None = None,
        again: int | None = None, request: str | None = None,
    ) -> Call[Json]:
        """Lock the next job of a queue for a person, or return the one that is reserved already."""
        argv = [encode(person), encode(worker), encode(limit), self._encode_time(now)]
        if again is not None:
            argv += [b"again", encode(again)]
        return Call(
            self.send, "reserve", read_json, [self._encode_queue(queue)], argv, request,
            writes=True,
        )

    def skip(
        self, *, jid: str, person: str, worker: str, now: float | None = None,
        fence: int | str | None = None, request: str | None = None,
    ) -> Call[str]:
        """Return a reserved job, behind the others."""
        argv = [encode(jid), encode(person), encode(worker), self._encode_time(now)]
        if fence is not None:
            argv += [b"fence", encode(fence)]
        return Call(
            self.send, "skip", read_text, [encode(self.namespace)], argv, request, writes=True,
        )
