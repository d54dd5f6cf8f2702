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

-- Handle an expired lock: notify the holder and start the grace period, or take the job away. A
-- reservation that a person let expire uses no retry. Return the job's record if this call may pop
-- it; nil if its grace period began, its retries are used up, it lost its lock too often, or a
-- newer job makes another run needless.
function locks.expire(queue, jid, now)
  local job = record.read(jid)
  if not job or job.state == 'complete' or job.state == 'failed' then
    redis.call('ZREM', keys.locks(queue), jid)
    return nil
  end
  if job.worker ~= '' then redis.call('ZREM', keys.worker_jobs(job.worker), jid) end
  if redis.call('HGET', keys.job(jid), 'x-reserved') == (job.fence or '') .. ' ' .. job.worker then
    history.append(jid, job, now, 'abandoned', cjson.encode({worker = job.worker}))
    events.publish_lock_lost(job.worker, jid)
    if archive.is_on() then archive.append_run(job, now, 'abandoned') end
    if job.constraints then limits.release(job, now) end
    return job
  end
  local grace = config.number('grace-period')
  if not job.grace or grace <= 0 then
    events.publish_tracked('stalled', jid)
    history.append(jid, job, now, 'timed-out')
    events.publish_lock_lost(job.worker, jid)
    stats.count(queue, now, 'retries', 1)
    if grace > 0 then
      record.set_fields(jid, 'grace', 1)
      redis.call('ZADD', keys.locks(queue), now + grace, jid)
      return nil
    end
  end
  record.delete_fields(jid, 'grace')
  if job.constraints then limits.release(job, now) end
  job.remaining = job.remaining - 1
  record.set_fields(jid, 'remaining', job.remaining)
  if locks.fail_if_lost(job, locks.count_lost(job), job.remaining < 0, now) then return nil end
  local newer = job.constraints and debounce.find_successor(job, now)
  if newer then
    queue_sets.remove(queue, jid)
    completion.supersede(job, newer, now)
    return nil
  end
  if archive.is_on() then archive.append_run(job, now, 'lost') end
  return job
end

-- Count a lost lock; from then on the job runs alone. Return how many it has lost since it was put
-- into its queue.
function locks.count_lost(job)
  local lost = (tonumber(redis.call('HGET', keys.job(job.jid), 'x-lost')) or 0) + 1
  record.set_fields(job.jid, 'x-lost', lost)
  job.constraints = job.constraints and bulks.separate(job)
  return lost
end

-- Fail a job that has lost more than `max-lost` locks, or has no retries left. Return whether it
-- has.
function locks.fail_if_lost(job, lost, exhausted, now)
  local most = config.number('max-lost')
  if most > 0 and lost > most then
    local message = string.format('Lost its lock %d times in queue "%s", lately by %s', lost,
      job.queue, history.list_holders(job, 3))
    failures.fail(job, job.queue .. '-lost-locks', message, job.worker, now, true)
  elseif exhausted then
    failures.fail_exhausted(job, nil, nil, job.worker, now)
  else
    return false
  end
  return true
end
