-- limits: concurrency and rate limits by key. A job has up to four (`limits` of its constraints):
-- it starts when all of them admit it, and takes from none otherwise. (held_jobs.lua has those that
-- wait, overdue_jobs.lua those that have waited for long.)

local LOOKS = 20
local KEPT = 60  -- seconds after which a slot that an overdue job keeps is looked at again

-- Whether a key of a job is paused, or has held or overdue jobs.
function limits.is_contended(own)
  local names = {}
  for _, limit in ipairs(own.limits) do
    names[#names + 1] = keys.limit_paused(limit.key)
    names[#names + 1] = keys.held_back(limit.key)
    names[#names + 1] = keys.overdue(limit.key)
  end
  return redis.call('EXISTS', unpack(names)) > 0
end

-- When a limit may admit a job that is the first to wait for it; nil if it does now. `contended`:
-- the key may be paused, or have overdue jobs.
function limits.find_due(limit, jid, score, contended, now)
  local due = contended and limits.read_pause(limit.key, now)
  local before = contended and overdue_jobs.find_before(limit.key, jid, tonumber(score), now)
  if limit.limit then
    local free = limits.find_busy_until(limit, before and 1 or 0, now)
    due = free and math.max(due or 0, free) or due
  end
  if limit.rate then
    local wanted = (limit.cost or 1) + (before and (before.cost or 1) or 0)
    local room = rates.find_room('k:' .. limit.key, limit, wanted, now)
    due = room and math.max(due or 0, room) or due
  end
  return due
end

-- Until when a key is at its limit, unless one of its jobs ends before; nil if it isn't. `kept`:
-- how many slots an overdue job keeps. Entries whose lock should have expired are verified, a few
-- per call.
function limits.find_busy_until(own, kept, now)
  local holding = keys.limit_running(own.key)
  if redis.call('ZCARD', holding) + kept < own.limit then return nil end
  for _, jid in ipairs(redis.call('ZRANGE', holding, '-inf', now, 'BYSCORE', 'LIMIT', 0, LOOKS)) do
    local job = redis.call('HMGET', keys.job(jid), 'state', 'expires', 'grace', 'queue')
    local ends = (tonumber(job[2]) or 0) + config.common('grace-period')
    if job[3] then
      ends = math.max(ends, tonumber(redis.call('ZSCORE', keys.locks(job[4] or ''), jid)) or 0)
    end
    if job[1] == 'running' and ends > now then
      redis.call('ZADD', holding, ends, jid)
    else
      redis.call('ZREM', holding, jid)
    end
  end
  local running = redis.call('ZCARD', holding)
  if running + kept < own.limit then return nil end
  if running < own.limit then return now + KEPT end
  return math.max(now + 1, tonumber(redis.call('ZRANGE', holding, 0, 0, 'WITHSCORES')[2]))
end

-- A run that was none leaves the rates. Its job's end wakes others of its keys.
function limits.undo_start(job)
  for _, limit in ipairs(job_constraints.read(job.constraints).limits or {}) do
    if limit.rate then
      if limit.cost then
        rates.change_cost('k:' .. limit.key, job.jid, job.time)
      else
        rates.remove_start('k:' .. limit.key, job.jid, job.time)
      end
    end
  end
end

-- Until when a key is paused; nil if it isn't. A pause that was stored while the clock was ahead by
-- more than its length doesn't count.
function limits.read_pause(key, now)
  local stored = redis.call('GET', keys.limit_paused(key))
  local ends, length = string.match(stored or '', '^(%S+) (%S+)$')
  ends, length = tonumber(ends), tonumber(length)
  return ends and now < ends and ends - 2 * length <= now and ends or nil
end

-- No job of a key starts for some time, nor before the end of an earlier pause.
function limits.pause(key, seconds, now)
  if (limits.read_pause(key, now) or 0) >= now + seconds then return end
  redis.call('SET', keys.limit_paused(key), string.format('%.6f %.6f', now + seconds, seconds),
    'PX', string.format('%.0f', math.max(1, seconds * 1000)))
end
