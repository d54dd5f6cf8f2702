"""The Lua commands of this extension, one typed method for each.

Generated from the headers in `lua` by `python -m tests.codegen`; don't edit.
"""
# fmt: off

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from aioqless.store import Call, ExtensionCommands
from aioqless.store.call import BatchEncoder, encode, read_answers, read_nothing, read_texts


class SetPutRow(TypedDict):
    """A row of `set_put`."""

    queue: str
    jid: str
    klass: str
    data: str | bytes
    delay: NotRequired[float | None]
    at: NotRequired[float | None]
    priority: NotRequired[float | None]
    tags: NotRequired[Sequence[str] | None]
    retries: NotRequired[int | None]
    depends: NotRequired[Sequence[str] | None]
    context: NotRequired[str | bytes | None]
    expires_in: NotRequired[float | None]
    constraints: NotRequired[str | bytes | None]
    if_dependency_fails: NotRequired[str | None]
    on_failure: NotRequired[str | bytes | None]
    missing: NotRequired[str | None]


_encode_set_put_batch = BatchEncoder(
    "set_put", required="queue jid klass data",
    optional="delay at priority tags retries depends context expires_in constraints "
        "if_dependency_fails on_failure missing",
)


class SetPutFlowRow(TypedDict):
    """A row of `set_put_flow`."""

    queue: str
    jid: str
    klass: str
    data: str | bytes
    delay: NotRequired[float | None]
    at: NotRequired[float | None]
    priority: NotRequired[float | None]
    tags: NotRequired[Sequence[str] | None]
    retries: NotRequired[int | None]
    depends: NotRequired[Sequence[str] | None]
    context: NotRequired[str | bytes | None]
    expires_in: NotRequired[float | None]
    constraints: NotRequired[str | bytes | None]
    if_dependency_fails: NotRequired[str | None]
    on_failure: NotRequired[str | bytes | None]
    missing: NotRequired[str | None]


_encode_set_put_flow_batch = BatchEncoder(
    "set_put_flow", required="queue jid klass data",
    optional="delay at priority tags retries depends context expires_in constraints "
        "if_dependency_fails on_failure missing",
)


class JobSetsCommands(ExtensionCommands):
    """The commands of this extension, each to be awaited."""

    def set_act_retry(
        self, *, set_name: str, now: float | None = None, cursor: int, request: str | None = None,
    ) -> Call[list[str]]:
        """Retry failed members."""
        argv = [encode(set_name), self._encode_time(now), encode(cursor), b"retry"]
        return Call(
            self.send, "set_act", read_texts, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def set_act_cancel(
        self, *, set_name: str, now: float | None = None, cursor: int, place: str,
        actor: str | None = None, request: str | None = None,
    ) -> Call[list[str]]:
        """Close the set and cancel members that have not ended."""
        argv = [encode(set_name), self._encode_time(now), encode(cursor), b"cancel", encode(place)]
        if actor is not None:
            argv += [b"actor", encode(actor)]
        return Call(
            self.send, "set_act", read_texts, [encode(self.namespace)], argv, request, writes=True,
            durable=True,
        )

    def set_close(
        self, *, set_name: str, now: float | None = None, then_put: str | bytes | None = None,
        when_ended: str | bytes | None = None, callbacks: str | None = None,
        request: str | None = None,
    ) -> Call[None]:
        """Close a job set."""
        argv = [encode(set_name), self._encode_time(now)]
        if then_put is not None:
            argv += [b"then_put", encode(then_put)]
        if when_ended is not None:
            argv += [b"when_ended", encode(when_ended)]
        if callbacks is not None:
            argv += [b"callbacks", encode(callbacks)]
        return Call(
            self.send, "set_close", read_nothing, [encode(self.namespace)], argv, request,
            writes=True, durable=True,
        )

    def set_put(
        self, *, set_name: str, now: float | None = None, batch: Sequence[SetPutRow],
        member: str | None = None, fence: int | str | None = None,
        then_put: str | bytes | None = None, when_ended: str | bytes | None = None,
        callbacks: str | None = None, request: str | None = None,
    ) -> Call[list[str | Exception]]:
        """Put jobs as members of a job set."""
        argv = [encode(set_name), self._encode_time(now)]
        argv += _encode_set_put_batch(batch)
        if member is not None:
            argv += [b"member", encode(member)]
        if fence is not None:
            argv += [b"fence", encode(fence)]
        if then_put is not None:
            argv += [b"then_put", encode(then_put)]
        if when_ended is not None:
            argv += [b"when_ended", encode(when_ended)]
        if callbacks is not None:
            argv += [b"callbacks", encode(callbacks)]
        return Call(
            self.send, "set_put", read_answers, [encode(self.namespace)], argv, request,
            writes=True, durable=True,
        )

    def set_put_flow(
        self, *, set_name: str, now: float | None = None, batch: Sequence[SetPutFlowRow],
        member: str | None = None, fence: int | str | None = None,
        then_put: str | bytes | None = None, when_ended: str | bytes | None = None,
        callbacks: str | None = None, request: str | None = None,
    ) -> Call[list[str]]:
        """Put the jobs of a workflow as members of a job set."""
        argv = [encode(set_name), self._encode_time(now)]
        argv += _encode_set_put_flow_batch(batch)
        if member is not None:
            argv += [b"member", encode(member)]
        if fence is not None:
            argv += [b"fence", encode(fence)]
        if then_put is not None:
            argv += [b"then_put", encode(then_put)]
        if when_ended is not None:
            argv += [b"when_ended", encode(when_ended)]
        if callbacks is not None:
            argv += [b"callbacks", encode(callbacks)]
        return Call(
            self.send, "set_put_flow", read_texts, [encode(self.namespace)], argv, request,
            writes=True, durable=True,
        )

    def set_status_one(self, *, set_name: str) -> Call[list[str]]:
        """One set, with its failure groups."""
        argv = [b"one", encode(set_name)]
        return Call(self.send, "set_status", read_texts, [encode(self.namespace)], argv)

    def set_status_page(self, *, offset: int, most: int) -> Call[list[str]]:
        """A page of all sets, the latest first."""
        argv = [b"page", encode(offset), encode(most)]
        return Call(self.send, "set_status", read_texts, [encode(self.namespace)], argv)

    def set_status_members(self, *, set_name: str, place: str, cursor: int) -> Call[list[str]]:
        """A portion of a set's members."""
        argv = [b"members", encode(set_name), encode(place), encode(cursor)]
        return Call(self.send, "set_status", read_texts, [encode(self.namespace)], argv)
