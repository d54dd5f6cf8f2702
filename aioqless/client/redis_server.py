"""The Redis server: its memory, persistence and load, and its slowest commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from aioqless.store import ScriptStore
from aioqless.store.command_header import command_names
from aioqless.store.script_composer import compose


@dataclass(frozen=True, kw_only=True)
class ServerInfo:
    """State of the Redis server.

    Attributes:
        version: Version of Redis or Valkey.
        memory: Used memory, in bytes.
        memory_limit: `maxmemory`, in bytes; 0 for no limit.
        eviction_policy: `maxmemory-policy`.
        persistence: What would be left of the jobs if Redis ended now, in words.
        saved: Whether the last write to disk succeeded.
        clients: Number of connections.
        commands_per_second: Commands per second.
        uptime: Seconds since the start of Redis.
        fragmentation: Ratio of the memory of the process to the used memory.
        cluster: Whether it is a node of a Cluster.
    """

    version: str = ""
    memory: int = 0
    memory_limit: int = 0
    eviction_policy: str = ""
    persistence: str = ""
    saved: bool = True
    clients: int = 0
    commands_per_second: int = 0
    uptime: int = 0
    fragmentation: float = 0
    cluster: bool = False


@dataclass(frozen=True)
class SlowCommand:
    """A command that Redis logged as slow, without its arguments.

    Attributes:
        when: When it ran, in seconds since 1970.
        seconds: How long it took.
        name: Name of the Redis command, or of the script.
        is_script: Whether it is a script of aioqless.
    """

    when: float
    seconds: float
    name: str
    is_script: bool


class Server:
    """The Redis server of a client."""

    def __init__(self, store: ScriptStore) -> None:
        self._store = store

    async def info(self) -> ServerInfo:
        """Read the server's state."""
        reply = await self._store.read_server("INFO")
        return server_info(parse_info(reply.decode("utf-8", "replace")))

    async def slow_commands(self, count: int = 20) -> list[SlowCommand]:
        """Read the latest slow commands, without arguments, which may contain job data.

        Args:
            count: Maximum number of commands.
        """
        found = []
        for entry in await self._store.read_server("SLOWLOG", "GET", count):
            words = [word.decode("utf-8", "replace") for word in entry[3][:2]]
            name, script = words[0].upper(), None
            if name == "EVALSHA" and len(words) > 1:
                script = _scripts_by_sha(self._store.namespace).get(words[1])
            found.append(SlowCommand(entry[1], entry[2] / 1e6, script or name, script is not None))
        return found


def server_info(fields: Mapping[str, str]) -> ServerInfo:
    """Return the state that the fields of INFO describe."""
    status = "aof_last_write_status" if _uses_aof(fields) else "rdb_last_bgsave_status"
    return ServerInfo(
        version=fields.get("valkey_version") or fields.get("redis_version", ""),
        memory=int(fields.get("used_memory", 0)),
        memory_limit=int(fields.get("maxmemory", 0)),
        eviction_policy=fields.get("maxmemory_policy", ""),
        persistence=_persistence(fields),
        saved=fields.get(status, "ok") == "ok",
        clients=int(fields.get("connected_clients", 0)),
        commands_per_second=int(fields.get("instantaneous_ops_per_sec", 0)),
        uptime=int(fields.get("uptime_in_seconds", 0)),
        fragmentation=float(fields.get("mem_fragmentation_ratio", 0)),
        cluster=fields.get("cluster_enabled") == "1",
    )


def parse_info(text: str) -> dict[str, str]:
    """Parse a reply to INFO."""
    return dict(
        line.split(":", 1) for line in text.splitlines() if ":" in line and not line.startswith("#")
    )


def _uses_aof(fields: Mapping[str, str]) -> bool:
    return fields.get("aof_enabled") == "1"


def _persistence(fields: Mapping[str, str]) -> str:
    """Return what would be left of the jobs if Redis ended now."""
    if _uses_aof(fields):
        return "append-only file"
    # Before the first snapshot, rdb_last_save_time is the time of the start.
    if int(fields.get("rdb_last_bgsave_time_sec", -1)) >= 0:
        return "snapshots"
    return "none (no snapshot since it started)"


@cache
def _scripts_by_sha(namespace: str) -> dict[str, str]:
    """Return the names of the scripts by their SHA-1, as Redis logs them."""
    return {compose(name, namespace).sha: name for name in command_names()}
