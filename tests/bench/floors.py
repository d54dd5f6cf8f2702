"""What the life of a plain job costs the server at least: straight scripts with the same promises.

Each script does what ours does for a plain job: request identity, fence, lock, history, statistics,
events, and looks for what makes a job more than plain. It has no library, no function and nothing
for other jobs, so the difference is the price of how our scripts are built. The instructions are
counted by callgrind, which the load of the machine doesn't change.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tests.bench.instructions import DATA, Counted

CYCLES, BATCH, PUTS = 200, 33, 50

_REQUEST: Final = """\
local line, number = string.match(ARGV[1], '^(%C+):(%d+)$')
number = tonumber(number)
local request = 'ql:x:request:' .. line
local stored = redis.call('GET', request)
if stored and cmsgpack.unpack(stored) >= number then return redis.error_reply('REPEATED') end
local clock = redis.call('TIME')
local now, time = clock[1] + clock[2] / 1000000, string.format('%s.%06d', clock[1], clock[2])
local fraction = string.format('0.%06d', clock[2])
if redis.call('EXISTS', 'ql:config', 'ql:tracked', 'ql:paused_queues', 'ql:x:retention-rules') > 0
then return redis.error_reply('NOTPLAIN') end
"""
_ANSWER: Final = """\
redis.call('SET', request, cmsgpack.pack(number, answer), 'EX', '120')
return answer
"""
_PUT: Final = f"""#!lua flags=allow-oom
{_REQUEST}
local queue, answer = ARGV[2], {{}}
local work = 'ql:q:' .. queue .. '-work'
local named = cjson.encode(queue)
for i = 3, #ARGV, 3 do
  local jid, klass, data = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if #jid > 512 or string.find(jid, '%c') or #klass > 512 or string.find(klass, '%c')
    or string.find(data, '^%s*false%s*$') then return redis.error_reply('BADARG') end
  local found = redis.call('EXISTS', 'ql:j:' .. jid, work, work)
  if found % 2 == 1 then return redis.error_reply('NOTPLAIN') end
  redis.call('PUBLISH', 'ql:log',
    '{{"event":"put","jid":' .. cjson.encode(jid) .. ',"queue":' .. named .. '}}')
  if found < 2 then redis.call('PUBLISH', 'ql:x:ready', '+' .. queue) end
  redis.call('ZADD', work, -now / 10000000000, jid)
  redis.call('HSET', 'ql:j:' .. jid, 'jid', jid, 'klass', klass, 'data', data, 'priority', '0',
    'tags', '[]', 'state', 'waiting', 'queue', queue, 'retries', '5', 'remaining', '5',
    'time', time, 'history', '[{{"q":' .. named .. ',"put":' .. time .. '}}]')
  answer[#answer + 1] = jid
end
if not redis.call('ZRANK', 'ql:queues', queue) then redis.call('ZADD', 'ql:queues', now, queue) end
{_ANSWER}"""
_STATISTICS: Final = """\
local day = string.format('%d', now - now % 86400)
local function add(kind, queue, values)
  local key = 'ql:s:' .. kind .. ':' .. day .. ':' .. queue
  local bin = 's' .. math.floor(values[1])
  local f = redis.call('HMGET', key, 'total', 'mean', 'vk', bin)
  local total, mean, vk = tonumber(f[1]) or 0, tonumber(f[2]) or 0, tonumber(f[3]) or 0
  for _, seconds in ipairs(values) do
    local deviation = seconds - mean
    total = total + 1
    mean = total == 1 and seconds or mean + deviation / total
    vk = total == 1 and 0 or vk + deviation * (seconds - mean)
  end
  redis.call('HSET', key, 'total', total, 'mean', mean, 'vk', vk, bin,
    (tonumber(f[4]) or 0) + #values)
end
"""
_POP: Final = f"""#!lua flags=allow-oom
{_REQUEST}{_STATISTICS}
local worker, queue, answer = ARGV[2], ARGV[3], {{}}
local work, locks = 'ql:q:' .. queue .. '-work', 'ql:q:' .. queue .. '-locks'
local top = redis.call('ZPOPMAX', work, ARGV[4])
local fence = redis.call('INCRBY', 'ql:x:fence', #top / 2) - #top / 2
local expires = string.format('%d', now + 60)
local event = '[' .. clock[1] .. ',"popped",{{"worker":' .. cjson.encode(worker) .. '}},'
  .. fraction .. ']'
local waits, locked = {{}}, {{}}
for i = 1, #top, 2 do
  local jid = top[i]
  local key = 'ql:j:' .. jid
  local row = redis.call('HMGET', key, 'jid', 'queue', 'priority', 'retries', 'remaining', 'tags',
    'klass', 'data', 'time', 'history')
  if redis.call('HLEN', key) ~= 11 then return redis.error_reply('NOTPLAIN') end
  local since, run = row[9], string.format('%d', fence + (i + 1) / 2)
  local named, whole, put = string.match(row[10], '^%[{{"q":("[^"\\\\]*"),"put":(%d+)(%.%d+)}}%]$')
  redis.call('RPUSH', key .. '-history',
    '[' .. whole .. ',"put",{{"q":' .. named .. '}},0' .. put .. ']', event)
  waits[#waits + 1] = now - since
  redis.call('HSET', key, 'state', 'running', 'worker', worker, 'expires', expires, 'time', time,
    'x-put', since, 'x-fence', run, 'history', '[]')
  row[9], row[10], row[11] = expires, run, string.format('%.3f', now - since)
  answer[#answer + 1] = row
  locked[i], locked[i + 1] = expires, jid
end
redis.call('ZADD', locks, unpack(locked))
redis.call('ZADD', 'ql:w:' .. worker .. ':jobs', unpack(locked))
if #top / 2 < tonumber(ARGV[4]) or redis.call('EXISTS', work) == 0 then
  redis.call('PUBLISH', 'ql:x:ready', '-' .. queue)
end
add('wait', queue, waits)
redis.call('SET', request, cmsgpack.pack(number, top), 'EX', '120')
return {{answer, '', time}}
"""
_COMPLETE: Final = f"""#!lua flags=allow-oom
{_REQUEST}{_STATISTICS}
local worker, queue, answer, runs, jids, ends = ARGV[2], ARGV[3], {{}}, {{}}, {{}}, {{}}
local named = ',"queue":' .. cjson.encode(queue) .. '}}'
local event = '[' .. clock[1] .. ',"done",{{}},' .. fraction .. ']'
for i = 4, #ARGV, 2 do
  local jid, fence = ARGV[i], ARGV[i + 1]
  local key = 'ql:j:' .. jid
  local f = redis.call('HMGET', key, 'state', 'queue', 'worker', 'retries', 'time', 'x-fence',
    'scheduled', 'grace', 'x-constraints')
  if f[1] ~= 'running' or f[2] ~= queue or f[3] ~= worker or f[6] ~= fence
    or f[7] or f[8] or f[9] then return redis.error_reply('LOCKLOST') end
  redis.call('RPUSH', key .. '-history', event)
  runs[#runs + 1] = now - f[5]
  redis.call('HSET', key, 'state', 'complete', 'queue', '', 'worker', '', 'expires', '0',
    'failure', '{{}}', 'remaining', f[4], 'time', time)
  redis.call('PUBLISH', 'ql:log',
    '{{"event":"completed","jid":' .. cjson.encode(jid) .. named)
  jids[#jids + 1] = jid
  ends[#ends + 1], ends[#ends + 2] = time, jid
  answer[#answer + 1] = 'complete'
end
redis.call('ZREM', 'ql:q:' .. queue .. '-locks', unpack(jids))
redis.call('ZREM', 'ql:w:' .. worker .. ':jobs', unpack(jids))
redis.call('ZADD', 'ql:completed', unpack(ends))
local dependents = {{}}
for i, jid in ipairs(jids) do dependents[i] = 'ql:j:' .. jid .. '-dependents' end
if redis.call('EXISTS', unpack(dependents)) > 0 then return redis.error_reply('NOTPLAIN') end
add('run', queue, runs)
{_ANSWER}"""


class Ours:
    """Our scripts, called as clients and workers do."""

    def __init__(self, server: Counted) -> None:
        self._call = server.call

    def put(self, *jids: str) -> None:
        rows = [{"jid": jid, "klass": "Greet", "data": DATA} for jid in jids]
        if len(rows) == 1:
            self._call("put", None, {"queue": "q", **rows[0]})
        else:
            self._call("put_many", None, {"queue": "q", "batch": rows})

    def pop(self, count: int) -> list[tuple[str, str]]:
        order = {"worker": "ann", "count": count, "order": "waiting", "batch": [{"queue": "q"}]}
        (rows, *_) = self._call("pop_many", None, order)
        return [(row[0].decode(), row[9].decode()) for row in rows]

    def complete(self, runs: Sequence[tuple[str, str]]) -> None:
        rows = [{"jid": jid, "queue": "q", "fence": fence} for jid, fence in runs]
        self._call("complete_many", None, {"worker": "ann", "batch": rows})


class Straight:
    """The straight scripts."""

    def __init__(self, server: Counted) -> None:
        self._scripts = [server.redis.script_load(each) for each in (_PUT, _POP, _COMPLETE)]
        self._redis = server.redis
        self._request = 0

    def _evaluate(self, script: int, *words: str | int) -> Any:
        self._request += 1
        request = f"straight:{self._request}"
        return self._redis.execute_command("EVALSHA", self._scripts[script], 0, request, *words)

    def put(self, *jids: str) -> None:
        self._evaluate(0, "q", *(word for jid in jids for word in (jid, "Greet", DATA)))

    def pop(self, count: int) -> list[tuple[str, str]]:
        (rows, *_) = self._evaluate(1, "ann", "q", count)
        return [(row[0].decode(), row[9].decode()) for row in rows]

    def complete(self, runs: Sequence[tuple[str, str]]) -> None:
        self._evaluate(2, "ann", "q", *(word for run in runs for word in run))


def measure(server: Counted, make: Callable[[Counted], Ours | Straight]) -> dict[str, int]:
    """Return instructions of the server for a job, by how it is put and worked."""
    server.redis.flushall()
    scripts, made, found = make(server), 0, {}

    def jids(count: int) -> list[str]:
        nonlocal made
        made += count
        return [f"{number:024x}" for number in range(made - count, made)]

    def cycle(count: int) -> None:
        scripts.put(*jids(1))
        scripts.complete(scripts.pop(count))

    for name, count in (("put + pop + complete", 1), ("while a worker keeps up", BATCH)):
        for _ in range(60):
            cycle(count)
        server.count()
        for _ in range(CYCLES):
            cycle(count)
        found[name] = server.count() // CYCLES
    for _ in range(2):  # the first fills Lua's tables
        server.count()
        for _ in range(10):
            scripts.put(*jids(PUTS))
        found[f"put_many of {PUTS}"] = server.count() // (10 * PUTS)
        for _ in range(10 * PUTS // BATCH):
            scripts.complete(scripts.pop(BATCH))
        found[f"pop + complete by {BATCH}"] = server.count() // (10 * PUTS // BATCH * BATCH)
        scripts.complete(scripts.pop(10 * PUTS % BATCH))
    return found


def main() -> None:
    """Print both, and their ratio."""
    with tempfile.TemporaryDirectory(prefix="aioqless-bench-") as folder:
        server = Counted(Path(folder))
        try:
            ours, straight = measure(server, Ours), measure(server, Straight)
        finally:
            server.end()
    print("| instructions of Redis, a job | ours | straight line | ratio |\n|---|---|---|---|")
    for name, count in ours.items():
        print(f"| {name} | {count:,} | {straight[name]:,} | {count / straight[name]:.2f} |")


if __name__ == "__main__":
    main()
