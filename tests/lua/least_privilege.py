"""The scripts, called by Redis users of which each may do only what one script needs.

With AIOQLESS_LEAST=1 all tests of scripts run so. A script may do what `aioqless acl` derives from
it, and a role may do what its scripts may: so no role is refused anything that it needs.
"""

from __future__ import annotations

import os

from redis import Redis

from aioqless.cli import acl_roles as acl
from aioqless.redis.connection import Connection
from aioqless.store import ScriptStore
from aioqless.store.call import Call, T
from aioqless.store.command_header import command_names
from aioqless.store.script_store import Words

WANTED = os.environ.get("AIOQLESS_LEAST") == "1"
ANY = "any-namespace"
ELSEWHERE = (
    "~*queues",
    "~*queue:*",
    "~*schedule",
    "~*retry",
    "~*-there:*",
)  # the keys from which `import` imports, as docs/redis.md says
NAMESPACES = (
    "test",
    "bad-input",
    "bounds",
    "any-json",
    "town",
)  # the namespaces of the tests


def make_users(redis: Redis) -> None:
    """Create a user per command, for any namespace."""
    for name in command_names():
        acl.ROLES[name] = {name}
        try:
            line = acl.user(name, ANY, "", name)
        finally:
            del acl.ROLES[name]
        words = [
            "nopass" if word.startswith("#") else word.replace(f"{ANY}:", "*:")
            for word in line.split()[1:]
        ]
        rules = [word for word in words if word != f"~{ANY}"] + [
            f"~{namespace}" for namespace in NAMESPACES
        ]
        redis.execute_command("ACL", "SETUSER", *rules, *(ELSEWHERE if name == "import" else ()))


class LeastPrivilegeScripts(ScriptStore):
    """The scripts with a connection per command, of its own user."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url = url
        self._connections: dict[str, Connection] = {}
        super().__init__(Connection(url), namespace)

    async def _evaluate(self, call: Call[T], words: Words) -> T:
        if call.command not in self._connections:
            self._connections[call.command] = Connection(
                self._url.replace("://", f"://{call.command}:any@", 1)
            )
        shared, self.connection = self.connection, self._connections[call.command]
        evaluated = super()._evaluate(call, words)
        try:
            return await evaluated
        finally:
            self.connection = shared

    async def aclose(self) -> None:
        for connection in (self.connection, *self._connections.values()):
            await connection.aclose()
