"""Least-privilege Redis users for each role, derived from the commands that the role may call.

The `@role` directives of the headers say which commands these are. A command's keys and Redis
commands are those that its Lua names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache

from aioqless.store.command_header import command_names, read_command
from aioqless.store.inlining import key_functions
from aioqless.store.keys import Keys
from aioqless.store.script_composer import source

# The roles whose commands each role may call besides its own. All commands that only read are the
# reader's.
_INCLUDED: dict[str, tuple[str, ...]] = {
    "producer": (),
    "worker": ("producer",),
    "people": ("reader",),
    "dashboard": ("reader", "producer"),
    "reader": (),
    "archiver": (),
}
_DIRECTLY = {
    "dashboard": ("pubsub|numsub",),
    "reader": ("pubsub|numsub",),
    "archiver": ("xrange", "xread", "xlen", "xinfo|stream"),
}  # what a role asks besides its scripts

# What every connection needs: calls, subscriptions, the topology, and the state of the server.
_CONNECTION = (
    *("evalsha", "eval", "script|load", "ping", "time", "select", "client|setname"),
    *("subscribe", "info", "role", "cluster|slots", "wait"),
)
# What takes their place on shard channels.
_SHARDED = {
    "subscribe": "ssubscribe",
    "publish": "spublish",
    "pubsub|numsub": "pubsub|shardnumsub",
}
_READS = """
EXISTS GET HEXISTS HGET HGETALL HLEN HMGET HSCAN HSTRLEN LINDEX LLEN LPOS LRANGE SCARD SISMEMBER
SMEMBERS SMISMEMBER SRANDMEMBER SSCAN TTL TYPE XINFO XLEN XRANGE XREVRANGE ZCARD ZCOUNT
ZMSCORE ZRANDMEMBER ZRANGE ZRANK ZREVRANK ZSCAN ZSCORE
"""
_WRITES = """
DEL EXPIRE HDEL HINCRBY HSET HSETNX INCR INCRBY INFO LPOP LPUSH LREM LSET LTRIM PERSIST PEXPIRE
PUBLISH RENAME RENAMENX RPOP RPUSH SADD SCAN SET SPOP SREM SUNIONSTORE TIME UNLINK XADD XDEL XTRIM
ZADD ZINCRBY ZPOPMAX ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE
"""
_ONLY_READ = set(_READS.split())
_KNOWN = _ONLY_READ | set(_WRITES.split())
_EXISTS = re.compile(r"redis\.call\('EXISTS'((?:,\s*keys\.[a-z_]+\([\w.]*\))+)\)")
_KEY = re.compile(r"(?:redis\.p?call\(\s*'([A-Z]+)',\s*)?\bkeys\.([a-z_]+)")


def _commands_of(role: str) -> set[str]:
    granted = {role, *_INCLUDED[role]}
    return {name for name in command_names() if granted & {*_roles(name)}}


def _roles(name: str) -> tuple[str, ...]:
    command = read_command(name)
    return command.roles if command.writes else ("reader", *command.roles)


ROLES: dict[str, set[str]] = {role: _commands_of(role) for role in _INCLUDED}


def user(role: str, namespace: str, password: str, name: str | None = None) -> str:
    """Return the line of an ACL file, or of redis.conf, for a user with a role.

    Everything after the word `user` can be passed to ACL SETUSER. It holds only a hash of the
    password.

    Args:
        role: One of ROLES.
        namespace: The namespace that the user may use; `billing{*}` stands for all that differ in
            two numbers in braces, of which messages are on shard channels.
        password: The user's password.
        name: The user's name; the role's unless given.

    Raises:
        ValueError: There is no such role.
    """
    if role not in ROLES:
        raise ValueError(f"there is no role {role!r}; there are {', '.join(ROLES)}")
    here, many = namespace.removesuffix("{*}"), namespace.endswith("{*}")
    rules = [
        f"#{hashlib.sha256(password.encode()).hexdigest()}",
        *_patterns(role, re.sub(r"([*?\[\]\\])", r"\\\1", here) + "{*}" * many),
        *(f"+{_SHARDED.get(each, each) if many else each}" for each in _redis_commands(role)),
    ]
    if many and "+get" not in rules:  # of the number of partitions
        rules.append("+get")
    return f"user {name or role} reset on {' '.join(rules)}"


def _redis_commands(role: str) -> list[str]:
    """List what the scripts call and what a connection needs.

    A command may be chosen at run time, so any mention of its name counts.
    """
    words = {word for name in ROLES[role] for word in re.findall(r"'([A-Z]+)'", source(name))}
    called = {word.lower() for word in words & _KNOWN}
    called = {"xinfo|stream" if command == "xinfo" else command for command in called}
    return [*_CONNECTION, *sorted((called | {*_DIRECTLY.get(role, ())}) - {*_CONNECTION})]


def _patterns(role: str, here: str) -> list[str]:
    """List its keys, read-only where no script of the role writes, and the namespace's channels."""
    # A call names its queue by such a key, by which a Cluster finds the node.
    written = {"q:*": True}
    for name in ROLES[role]:
        for pattern, writes in _key_uses(name):
            written[pattern] = written.get(pattern, False) or writes
    if here.endswith("{*}"):
        written["x:partitions"] = False
    keys = [
        f"{'~' if writes else '%R~'}{here}:{pattern}"
        for pattern, writes in sorted(written.items())
        if not _is_covered(pattern, written)
    ]
    return [f"~{here}", *keys, f"&{here}:*"]


def _key_uses(name: str) -> Iterator[tuple[str, bool]]:
    """Each key of a command as a pattern, and whether it may be written.

    It may where it is not seen to be the key of a command that only reads.
    """
    command = read_command(name)
    text = source(name)
    asked_for = " ".join(_EXISTS.findall(text))
    uses = [
        *((key, False) for _, key in _KEY.findall(asked_for)),
        *(
            (key, command.writes and redis_command not in _ONLY_READ)
            for redis_command, key in _KEY.findall(_EXISTS.sub("", text))
            if redis_command != "PUBLISH"
        ),
    ]
    for key, writes in [*uses, *command.key_uses.items()]:
        if pattern := _pattern(key):
            yield pattern, writes


@cache
def _pattern(key: str) -> str:
    """Return the pattern of a key within the namespace; nothing for a key outside."""
    if key not in key_functions():
        return key  # a directive may give the pattern itself
    parameters, _ = key_functions()[key]
    whole = Keys("ns")(key, *["*"] * len(parameters)).decode()
    return whole.removeprefix("ns:") if whole.startswith("ns:") else ""


def _is_covered(pattern: str, written: dict[str, bool]) -> bool:
    """Return whether another pattern includes it."""
    others = (each for each in written if each != pattern and written[each] >= written[pattern])
    return any(fnmatchcase(pattern.replace("*", "x"), other) for other in others)
