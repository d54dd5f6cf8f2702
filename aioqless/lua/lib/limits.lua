-- limits: concurrency and rate limits by key.
-- A job that may not start yet is held back: it moves to `-scheduled`, which peers tolerate, so
-- that it doesn't block those behind it in `-work`, and is listed by its key with its score in
-- `-work`. It is woken when a running job of its key ends; if that never happens, it is due when
-- that job's lock has expired.

local LOOKS = 20
local LATER = 3600
local MOST_SHOWN = 10

-- Whether the next job may start; if so it counts from now on, otherwise it is held back.
function limits.admit(job, own, queue, score, now)
  local of, waiting = 'k:' .. own.key, keys.held_back(own.key)
  local full, due = own.limit and limits.find_busy_until(own, now)
  if full or own.rate and rates.read_capacity(of, own.rate, now) == 0 then
    redis.call('ZADD', waiting, score, job.jid)
    local ahead = redis.call('ZREVRANK', waiting, job.jid)
    if full then
      due = ahead < own.limit and full or now + LATER
    else
      due = rates.find_next_start(of, own.rate, ahead, now)
    end
    record.set_fields(job.jid, 'state', 'scheduled', 'worker', '', 'expires', 0)
    queue_sets.add_scheduled(queue, job.jid, due)
    return false
  end
  if own.limit then
    redis.call('ZADD', keys.limit_running(own.key),
      now + config.heartbeat(queue) + config.number('grace-period'), job.jid)
  end
  if own.rate then rates.record_starts(of, own.rate, {job.jid}, now) end
  return true
end

-- Until when a key is at its limit, unless one of its jobs ends before; nil if it isn't. Entries
-- whose lock should have expired are verified, a few per call.
function limits.find_busy_until(own, now)
  local holding = keys.limit_running(own.key)
  if redis.call('ZCARD', holding) < own.limit then return nil end
  for _, jid in ipairs(redis.call('ZRANGE', holding, '-inf', now, 'BYSCORE', 'LIMIT', 0, LOOKS)) do
    local job = redis.call('HMGET', keys.job(jid), 'state', 'expires', 'grace', 'queue')
    local ends = (tonumber(job[2]) or 0) + config.number('grace-period')
    if job[3] then
      ends = math.max(ends, tonumber(redis.call('ZSCORE', keys.locks(job[4] or ''), jid)) or 0)
    end
    if job[1] == 'running' and ends > now then
      redis.call('ZADD', holding, ends, jid)
    else
      redis.call('ZREM', holding, jid)
    end
  end
  if redis.call('ZCARD', holding) < own.limit then return nil end
  return math.max(now + 1, tonumber(redis.call('ZRANGE', holding, 0, 0, 'WITHSCORES')[2]))
end

-- A job stops running or waiting: wake the next one of its key. One that hasn't run gives its turn
-- back.
function limits.release(job, now)
  local own = job_constraints.read(job.constraints)
  if own.fair and job.state ~= 'running' then turns.give_back(job, own) end
  if not own.key then return end
  local left = redis.call('ZREM', keys.limit_running(own.key), job.jid)
    + redis.call('ZREM', keys.held_back(own.key), job.jid)
  for _ = 1, left > 0 and LOOKS or 0 do
    local top = redis.call('ZRANGE', keys.held_back(own.key), -1, -1, 'WITHSCORES')
    if not top[1] or limits.wake(own.key, top[1], top[2], now) then return end
    redis.call('ZREM', keys.held_back(own.key), top[1])
  end
end

-- Move the first job that is held back to its place in the queue, or reschedule it if the rate
-- limit is reached. Return false if the job isn't held back at all.
function limits.wake(key, jid, score, now)
  local job = redis.call('HMGET', keys.job(jid), 'queue', 'x-constraints', 'priority')
  local own = job_constraints.read(job[2])
  if not job[1] or own.key ~= key or not redis.call('ZSCORE', keys.scheduled(job[1]), jid) then
    return false
  end
  if own.rate and rates.read_capacity('k:' .. key, own.rate, now) == 0 then
    local due = rates.find_next_start('k:' .. key, own.rate, 0, now)
    if due < tonumber(redis.call('ZSCORE', keys.scheduled(job[1]), jid)) then
      queue_sets.add_scheduled(job[1], jid, due)
    end
    return true
  end
  redis.call('ZREM', keys.scheduled(job[1]), jid)
  redis.call('ZREM', keys.held_back(key), jid)
  record.set_fields(jid, 'state', 'waiting')
  queue_sets.add_waiting(job[1], jid,
    own.fair and turns.resume(job[1], jid, tonumber(job[3]) or 0, job[2], now) or score)
  return true
end

-- The score in `-work` of a job that was held back and is due; nil for other jobs. It is no longer
-- held back.
function limits.take_held_score(text, jid)
  local key = job_constraints.read(text).key
  local score = key and redis.call('ZSCORE', keys.held_back(key), jid)
  if score then redis.call('ZREM', keys.held_back(key), jid) end
  return score
end

-- Update the score of a job that is held back.
function limits.change_priority(job, priority)
  local key = job_constraints.read(job.constraints).key
  local score = key and tonumber(redis.call('ZSCORE', keys.held_back(key), job.jid))
  local since = score and priority_score.read_since(score, job.priority)
  local changed = score and turns.change_priority(job, priority)
    or since and priority_score.compute(priority, since)
  if changed then redis.call('ZADD', keys.held_back(key), changed, job.jid) end
end

-- JSON: which limit holds a job back, with running jobs of its key or its rate, and when it is
-- checked again; nil if it isn't held back.
function limits.explain_hold(jid, queue, text)
  local own = json.parse_object(text)
  if type(own.key) ~= 'string' or not redis.call('ZSCORE', keys.held_back(own.key), jid) then
    return nil
  end
  local due = redis.call('ZSCORE', keys.scheduled(queue), jid)
  local said = '{"key":' .. cjson.encode(own.key) .. ',"until":'
    .. json.number(tonumber(due or 0) or 0)
  if type(own.limit) == 'number'
    and redis.call('ZCARD', keys.limit_running(own.key)) >= own.limit then
    return said .. ',"limit":' .. json.number(own.limit) .. ',"running":'
      .. json.texts(redis.call('ZRANGE', keys.limit_running(own.key), 0, MOST_SHOWN - 1)) .. '}'
  end
  if type(own.rate) ~= 'table' then return said .. '}' end
  return said .. ',"rate":' .. cjson.encode(own.rate) .. '}'
end
