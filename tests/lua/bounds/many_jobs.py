"""Very many jobs at once, and the number of Redis commands that a call runs on them.

Work is counted in Redis commands that a call's script runs. The usual and the longest times are
printed (`pytest -s`). With AIOQLESS_FULL=1 the sizes are those of a severe backlog.
"""

import os
from typing import Any

from tests.lua.story import Story

FULL = os.environ.get("AIOQLESS_FULL") == "1"
MANY = 100_000 if FULL else 3_000
COMPLETED = 300_000 if FULL else 6_000
AN_INTERVAL_LONG = 86_400 if FULL else 3_000
MOST = 1_000
A_MOMENT = 1_700_000_000
FAILURE = '{"group":"typo","message":"","when":#,"worker":""}'
# Jobs as qless would create them, thousands at a time.
_CROWD = """
local ns, prefix, first, last, place, score, step = unpack(ARGV, 1, 7)
local fields = {unpack(ARGV, 8)}
for i = first, last do
  local jid = prefix .. string.format('%d', i)
  fields[#fields] = string.gsub(ARGV[#ARGV], '#', string.format('%d', i))
  redis.call('HSET', ns .. ':j:' .. jid, 'jid', jid, unpack(fields))
  redis.call('RPUSH', ns .. ':j:' .. jid .. '-history', '[0,"put",{"q":"mail"}]')
  if string.find(place, '^f:') then
    redis.call('LPUSH', ns .. ':' .. place, jid)
  elseif place ~= '' then
    redis.call('ZADD', ns .. ':' .. place, score + i * step, jid)
  end
end
"""
MEMBERS = (
    "for i = ARGV[1], ARGV[2] do redis.call('SADD', KEYS[1], ARGV[3] .. string.format('%d', i)) end"
)
EACH_HAS = (
    "for i = ARGV[1], ARGV[2] do redis.call('SADD', KEYS[1] .. string.format('%d', i) .. "
    "ARGV[3], ARGV[4]) end"
)


class Gauge:
    """Calls commands, and records how much work they do.

    That is the maximum number of Redis commands of one call, and the server's time for each call in
    µs.
    """

    def __init__(self, story: Story) -> None:
        self.story = story
        self.most = 0
        self.took: list[int] = []

    async def __call__(self, command: str, word: str | None = None, /, **arguments: Any) -> Any:
        await self.story.ask("CONFIG", "RESETSTAT")
        before = await self._worked()
        try:
            return await self.story.call(command, word, **arguments)
        finally:
            counted = await self.story.redis.info("commandstats")
            self.took.append(round(await self._worked() - before))
            ours = (
                "cmdstat_eval",
                "cmdstat_script",
                "cmdstat_config",
                "cmdstat_info",
                "cmdstat_client",
            )
            self.most = max(
                self.most,
                sum(each["calls"] for name, each in counted.items() if not name.startswith(ours)),
            )

    async def _worked(self) -> float:
        """Return the CPU time of the server, which is independent of the load of the machine."""
        used = await self.story.redis.info("cpu")
        return 1e6 * (
            float(used["used_cpu_user_main_thread"]) + float(used["used_cpu_sys_main_thread"])
        )


async def crowd(
    story: Story,
    size: int,
    place: str,
    state: str,
    *,
    prefix: str = "j",
    score: float = 0,
    step: float = 0,
    queue: str = "mail",
    **more: Any,
) -> None:
    """Create `size` jobs in one state, in one set or list.

    A # in the last field stands for the job's number.
    """
    usual = {
        "klass": "K",
        "data": "{}",
        "priority": 0,
        "tags": "[]",
        "worker": "",
        "expires": 0,
        "retries": 5,
        "remaining": 5,
        "time": 0,
    }
    fields = usual | {"state": state, "queue": queue} | more
    flat = [part for field in fields.items() for part in field]
    for first in range(0, size, 5_000):
        last = min(first + 5_000, size) - 1
        await story.ask(
            "EVAL", _CROWD, 0, story.namespace, prefix, first, last, place, score, step, *flat
        )
    if queue:
        await story.change("ZADD", "queues", 0, queue)


async def bind(story: Story, size: int, *, dependents: bool) -> None:
    """Make all jobs dependents, or dependencies, of `hub`."""
    mine, theirs = (
        ("-dependents", "-dependencies") if dependents else ("-dependencies", "-dependents")
    )
    for first in range(0, size, 5_000):
        last = min(first + 5_000, size) - 1
        await story.ask("EVAL", MEMBERS, 1, story.key(f"j:hub{mine}"), first, last, "j")
        await story.ask("EVAL", EACH_HAS, 1, story.key("j:j"), first, last, theirs, "hub")


async def count(story: Story, name: str) -> int:
    """Return the number of members of a set, sorted set or list."""
    kind = (await story.ask("TYPE", story.key(name))).decode()
    size = {"zset": "ZCARD", "set": "SCARD", "list": "LLEN", "none": "EXISTS", "hash": "HLEN"}[kind]
    return int(await story.ask(size, story.key(name)))


async def is_sound(story: Story, at: float) -> bool:
    cursor = ""
    while cursor != "0":
        reply = await story.store.check(now=at, cursor=cursor, budget=10_000)
        assert reply["found"] == []
        cursor = reply["cursor"]
    return True


def new_job(**more: Any) -> dict[str, Any]:
    """Return the arguments of a `put`."""
    return {"queue": "mail", "jid": "new", "klass": "K", "data": "{}", "now": 1, "delay": 0, **more}
