"""Users of Redis that may do what their part needs, and no more: read off the scripts that a part
calls, so they fit each other."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from aioqless.store.composer import compose
from aioqless.store.header import command_names, read_command

_READING = {name for name in command_names() if not read_command(name).writes}
_PUTTING = {
    "put",
    "put_many",
    "put_flow",
    "requeue",
    "recur",
    "cancel",
    "depends",
    "priority",
    "tag",
    "track",
    "get",
    "multiget",
    "states",
}
_PUTTING |= {"result", "length", "lag", "queue_names"}
_RUNNING = {
    "pop",
    "pop_many",
    "complete",
    "complete_many",
    "fail",
    "retry",
    "release",
    "heartbeat",
    "heartbeat_many",
    "log",
    "deregister",
}
_RUNNING |= {
    "dependency_results",
    "incarnation",
    "answer",
    "declare",
    "tick",
    "timeout",
    "peek",
    "archive_state",
}
_RESERVING = {
    "reserve",
    "reservation",
    "extend",
    "hand_over",
    "skip",
    "complete",
    "fail",
    "retry",
    "release",
    "heartbeat",
    "log",
}
_ARCHIVING = {"archive_state", "archive_trim", "sweep"}
_OPERATING = (
    set(command_names()) - _RUNNING - _RESERVING - _ARCHIVING - {"intake"}
)  # whatever people do from outside
_OPERATING |= {"timeout", "deregister", "log", "peek"}

ROLES: dict[str, set[str]] = {
    "producer": _PUTTING,
    "worker": _PUTTING | _RUNNING,
    "people": _READING | _RESERVING | {"peek", "session"},
    "dashboard": _READING | _PUTTING | _OPERATING,
    "reader": _READING,
    "archiver": _ARCHIVING | {"failed"},
}
_DIRECTLY = {
    "dashboard": ("pubsub|numsub",),
    "reader": ("pubsub|numsub",),
    "archiver": ("xrange", "xread", "xlen", "xinfo|stream"),
}  # what a part asks beside its scripts

# What a connection needs whoever uses it: calls, subscriptions, where it is, and how the server is.
_CONNECTION = (
    *("evalsha", "eval", "ping", "time", "select", "client|setname"),
    *("subscribe", "unsubscribe", "info", "role", "cluster|slots", "wait"),
)
_READS = """EXISTS GET HEXISTS HGET HGETALL HLEN HMGET HSCAN HSTRLEN LINDEX LLEN LPOS LRANGE SCARD SISMEMBER SMEMBERS SMISMEMBER SRANDMEMBER
SSCAN TTL TYPE XINFO XLEN XRANGE XREVRANGE ZCARD ZCOUNT ZRANDMEMBER ZRANGE ZREVRANK ZSCAN ZSCORE"""
_WRITES = """DEL EXPIRE HDEL HINCRBY HSET HSETNX INCR INCRBY INFO LPOP LPUSH LREM LTRIM PEXPIRE PUBLISH RENAME RENAMENX RPOP RPUSH SADD SCAN
SET SPOP SREM SUNIONSTORE TIME UNLINK XADD XDEL XTRIM ZADD ZINCRBY ZPOPMAX ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE"""
_ONLY_READ = set(_READS.split())
_KNOWN = _ONLY_READ | set(_WRITES.split())

_CALL = re.compile(r"redis\.p?call\(\s*'([A-Z]+)',\s*$")
_KEY = re.compile(
    r"'\x02:([^']*)'((?:\s*\.\.\s*(?:'[^']*'|string\.format\([^)]*\)|[\w.\[\] ]*\w\]?))*)"
)
_FAMILY = re.compile(
    r"\{'\w+', '\^([^$']*)(\$?)', function\(here"
)  # those that aren't looked at have no name there
_PLAIN = str.maketrans("", "", "%()")
_NAMESPACE = "\x02"  # stands for it in the scripts that are read


def user(role: str, namespace: str, password: str, name: str | None = None) -> str:
    """The line of an ACL file, or of redis.conf, for a user with a role; behind the word `user` it
    is what ACL SETUSER takes. Only a hash of the password is in it. Raises ValueError for a role
    that there isn't."""
    if role not in ROLES:
        raise ValueError(f"there is no role {role!r}; there are {', '.join(ROLES)}")
    rules = [
        f"#{hashlib.sha256(password.encode()).hexdigest()}",
        *_patterns(role, namespace),
        *(f"+{each}" for each in _commands(role)),
    ]
    return f"user {name or role} reset on {' '.join(rules)}"


def _scripts(role: str) -> list[str]:
    return [compose(name, _NAMESPACE).text for name in sorted(ROLES[role] & set(command_names()))]


def _commands(role: str) -> list[str]:
    """What the scripts call, beside what the connection needs. A command may be chosen at run time,
    so any of its name counts."""
    called = {
        word.lower()
        for script in _scripts(role)
        for word in re.findall(r"'([A-Z]+)'", script)
        if word in _KNOWN
    }
    called = {"xinfo|stream" if command == "xinfo" else command for command in called}
    return [*_CONNECTION, *sorted((called | set(_DIRECTLY.get(role, ()))) - set(_CONNECTION))]


def _patterns(role: str, namespace: str) -> list[str]:
    """Its keys: to read only, where no script of the role does more. All channels are the
    namespace's."""
    written: dict[str, bool] = {}
    for script in _scripts(role):
        for pattern, command in _keys(script):
            if command != "PUBLISH":
                written[pattern] = written.get(pattern, False) or command not in _ONLY_READ
    if "find" in ROLES[role]:
        written.setdefault("j:*", False)  # it comes by its keys, too
    if "check" in ROLES[role]:
        written |= dict.fromkeys(_mended(), True)
        written["*"] = False  # it looks at every key that there is
    written["q:*"] = (
        # a call names its queue by such a key, by which a Cluster finds the node; it needn't be
        # there
        True
    )
    here = re.sub(r"([*?\[\]\\])", r"\\\1", namespace)
    keys = [
        f"{'~' if writes else '%R~'}{here}:{pattern}"
        for pattern, writes in sorted(written.items())
        if not _covered(pattern, written)
    ]
    return [f"~{here}", *keys, f"&{here}:*"]


def _mended() -> list[str]:
    """Keys that `check` may change, by the kinds that it knows; they aren't spelled where it
    does."""
    kinds = _FAMILY.findall(compose("check", _NAMESPACE).text)
    return [
        re.sub(r"\(\.[*+]\)", "*", kind).translate(_PLAIN) + ("" if ended else "*")
        for kind, ended in kinds
    ]


def _covered(pattern: str, written: dict[str, bool]) -> bool:
    """Whether another pattern says it already."""
    others = [
        other for other in written if other != pattern and (written[other] or not written[pattern])
    ]
    return not pattern or any(fnmatchcase(pattern.replace("*", "x"), other) for other in others)


def _keys(script: str) -> Iterator[tuple[str, str]]:
    """Each key that is spelled, as a pattern, with the command that it is the first argument of;
    empty where that isn't to be seen."""
    for line in script.splitlines():
        for found in _KEY.finditer(line):
            before = line[: found.start()].rstrip("(")
            parts = re.findall(
                r"'([^']*)'|(\w+)", re.sub(r"string\.format\([^)]*\)|\[[^\]]*\]", "x", found[2])
            )
            rest = "".join(text if not name else "*" for text, name in parts)
            command = _CALL.search(before)
            yield re.sub(r"\*+", "*", found[1] + rest), command[1] if command else ""
