"""The Lua commands of this extension, one typed method for each.

Generated from the headers in `lua` by `python -m tests.codegen`; don't edit.
"""
# fmt: off

from __future__ import annotations

from aioqless.store import Call, ExtensionCommands, Json
from aioqless.store.call import encode, encode_optional, read_json, read_text


class DashboardCommands(ExtensionCommands):
    """The commands of this extension, each to be awaited."""

    def audit_log_add(
        self, *, who: str, act: str, about: str | bytes, outcome: str, request: str | None = None,
    ) -> Call[str]:
        """Record an action of a user."""
        argv = [b"add", encode(who), encode(act), encode(about), encode(outcome)]
        return Call(
            self.send, "audit_log", read_text, [encode(self.namespace)], argv, request, writes=True,
        )

    def audit_log_login(
        self, *, who: str, act: str, about: str | bytes, outcome: str, request: str | None = None,
    ) -> Call[str]:
        """Record a login, or a refused one."""
        argv = [b"login", encode(who), encode(act), encode(about), encode(outcome)]
        return Call(
            self.send, "audit_log", read_text, [encode(self.namespace)], argv, request, writes=True,
        )

    def audit_log_list(
        self, *, before: str | None = None, count: int | None = None, request: str | None = None,
    ) -> Call[Json]:
        """List the actions of users."""
        argv = [b"list", encode_optional(before), encode_optional(count)]
        return Call(
            self.send, "audit_log", read_json, [encode(self.namespace)], argv, request, writes=True,
        )

    def audit_log_logins(
        self, *, before: str | None = None, count: int | None = None, request: str | None = None,
    ) -> Call[Json]:
        """List the logins."""
        argv = [b"logins", encode_optional(before), encode_optional(count)]
        return Call(
            self.send, "audit_log", read_json, [encode(self.namespace)], argv, request, writes=True,
        )

    def limit_usage(self, *, queue: str, now: float | None = None) -> Call[Json]:
        """How full the limits by key are that scheduled and running jobs of a queue have."""
        argv = [self._encode_time(now)]
        return Call(self.send, "limit_usage", read_json, [self._encode_queue(queue)], argv)
