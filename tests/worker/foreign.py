"""A put as other qless clients make it, independent of our scripts."""

from __future__ import annotations

import time

from redis.asyncio import Redis

_PUT = """
local ns, queue, jid, klass, data, now, delay = unpack(ARGV)
redis.call('PUBLISH', ns .. ':log', cjson.encode({event = 'put', jid = jid, queue = queue}))
redis.call('RPUSH', ns .. ':j:' .. jid .. '-history',
  cjson.encode({math.floor(now), 'put', {q = queue}}))
redis.call('HMSET', ns .. ':j:' .. jid, 'jid', jid, 'klass', klass, 'data', data,
  'priority', 0, 'tags', '{}', 'state', tonumber(delay) > 0 and 'scheduled' or 'waiting',
  'worker', '', 'expires', 0, 'queue', queue, 'retries', 5, 'remaining', 5,
  'time', string.format('%.20f', now))
if tonumber(delay) > 0 then
  redis.call('ZADD', ns .. ':q:' .. queue .. '-scheduled', now + delay, jid)
else
  redis.call('ZADD', ns .. ':q:' .. queue .. '-work', 0 - now / 10000000000, jid)
end
if not redis.call('ZSCORE', ns .. ':queues', queue) then
  redis.call('ZADD', ns .. ':queues', now, queue)
end
return jid
"""


async def put(
    redis: Redis,
    namespace: str,
    queue: str,
    jid: str,
    klass: str,
    *,
    data: str = "{}",
    delay: float = 0,
) -> None:
    """Put a job as a Ruby or Python qless client does, with its own clock."""
    await redis.eval(_PUT, 0, namespace, queue, jid, klass, data, str(time.time()), str(delay))
