-- locks: which worker runs which job, and until when.

local LONG = 10

-- When a lock that is taken now expires. A long one expires at a whole second (rounded up) if the
-- clock is Redis' own: a sorted set of up to 128 members is a list, in which Redis parses each
-- score that it passes, and a fraction takes ten times as long.
function locks.compute_expiry(queue, now)
  local length = config.heartbeat(queue)
  return clock.is_used() and length >= LONG and math.ceil(now + length) or now + length
end

-- Take or renew a lock, expired or not: it stays with its holder until another worker takes it.
function locks.store(queue, jid, worker, expires)
  redis.call('ZADD', keys.locks(queue), expires, jid)
  redis.call('ZADD', keys.worker_jobs(worker), expires, jid)
end

-- Renew a lock by its holder's heartbeat. Return when it expires.
function locks.renew(jid, worker, fence, now, data)
  local job = record.require_held(jid, worker, fence)
  local expires = locks.compute_expiry(job.queue, now)
  record.set_fields(jid, 'expires', expires, 'worker', worker)
  if data then record.set_fields(jid, 'data', data) end
  if job.grace then record.delete_fields(jid, 'grace') end
  locks.store(job.queue, jid, worker, expires)
  redis.call('ZADD', keys.workers(), now, worker)
  return expires
end

-- Expired locks of the queue, oldest first.
function locks.find_expired(queue, now, most)
  if most <= 0 then return {} end
  return redis.call('ZRANGE', keys.locks(queue), '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
end

-- How many more jobs may run in this queue; expired locks don't count.
function locks.read_capacity(queue, now)
  local most = config.max_concurrency(queue)
  if most <= 0 then return math.huge end
  return math.max(0, most - redis.call('ZCOUNT', keys.locks(queue), now, '+inf'))
end
