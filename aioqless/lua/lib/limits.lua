-- limits: how many jobs of a key run at once, and how often one starts.
-- A job that may not start yet is held back: it waits in `-scheduled`, where peers tolerate it, so that those behind it in `-work` go on,
-- and is listed by its key with its place in `-work`. It is woken when another of its key ends; if that never does, it is due when the
-- other's lock has run out.

local LOOKS = 20
local LATER = 3600
local MOST_SHOWN = 10

-- Whether a job that was next in line may start; from now on it counts. One that may not is held back.
-- @seldom
function limits.admit(job, queue, score, now)
  local own = constraints.read(job.terms)
  if not own.key then return true end
  local of, waiting = 'k:' .. own.key, keys.held_back(own.key)
  local full, due = own.limit and limits.find_busy_until(own, now)
  if full or own.rate and rates.read_capacity(of, own.rate, now) == 0 then
    redis.call('ZADD', waiting, score, job.jid)
    local ahead = redis.call('ZREVRANK', waiting, job.jid)
    if full then due = ahead < own.limit and full or now + LATER else due = rates.find_next_start(of, own.rate, ahead, now) end
    record.set_fields(job.jid, 'state', 'scheduled', 'worker', '', 'expires', 0)
    queue_sets.add_scheduled(queue, job.jid, due)
    return false
  end
  if own.limit then redis.call('ZADD', keys.limit_running(own.key), now + config.heartbeat(queue) + config.number('grace-period'), job.jid) end
  if own.rate then rates.record_starts(of, own.rate, {job.jid}, now) end
  return true
end

-- When a key that is at its limit may have room, if nobody says so before; nil when it has. Those whose lock should have run out are
-- looked at again, a few in each call.
function limits.find_busy_until(own, now)
  local holding = keys.limit_running(own.key)
  if redis.call('ZCARD', holding) < own.limit then return nil end
  for _, jid in ipairs(redis.call('ZRANGE', holding, '-inf', now, 'BYSCORE', 'LIMIT', 0, LOOKS)) do
    local job = redis.call('HMGET', keys.job(jid), 'state', 'expires', 'grace', 'queue')
    local ends = (tonumber(job[2]) or 0) + config.number('grace-period')
    if job[3] then ends = math.max(ends, tonumber(redis.call('ZSCORE', keys.locks(job[4] or ''), jid)) or 0) end
    if job[1] == 'running' and ends > now then redis.call('ZADD', holding, ends, jid) else redis.call('ZREM', holding, jid) end
  end
  if redis.call('ZCARD', holding) < own.limit then return nil end
  return math.max(now + 1, tonumber(redis.call('ZRANGE', holding, 0, 0, 'WITHSCORES')[2]))
end

-- A job no longer runs, or no longer waits where it was: the next of its key may.
-- @seldom
function limits.release(job, now)
  local own = constraints.read(job.terms)
  if not own.key then return end
  local left = redis.call('ZREM', keys.limit_running(own.key), job.jid) + redis.call('ZREM', keys.held_back(own.key), job.jid)
  for _ = 1, left > 0 and LOOKS or 0 do
    local top = redis.call('ZRANGE', keys.held_back(own.key), -1, -1, 'WITHSCORES')
    if not top[1] or limits.wake(own.key, top[1], top[2], now) then return end
    redis.call('ZREM', keys.held_back(own.key), top[1])
  end
end

-- The first of those held back goes to its place in line, or if its rate forbids, will do so then. False if it isn't held back at all.
function limits.wake(key, jid, score, now)
  local job = redis.call('HMGET', keys.job(jid), 'queue', 'x-terms')
  local own = constraints.read(job[2])
  if not job[1] or own.key ~= key or not redis.call('ZSCORE', keys.scheduled(job[1]), jid) then return false end
  if own.rate and rates.read_capacity('k:' .. key, own.rate, now) == 0 then
    local due = rates.find_next_start('k:' .. key, own.rate, 0, now)
    if due < tonumber(redis.call('ZSCORE', keys.scheduled(job[1]), jid)) then queue_sets.add_scheduled(job[1], jid, due) end
    return true
  end
  redis.call('ZREM', keys.scheduled(job[1]), jid)
  redis.call('ZREM', keys.held_back(key), jid)
  record.set_fields(jid, 'state', 'waiting')
  queue_sets.add_waiting(job[1], jid, score)
  return true
end

-- The place in line of a job that is held back and has become due; nil for others. It is held back no longer.
-- @seldom
function limits.take_held_score(text, jid)
  local key = constraints.read(text).key
  local score = key and redis.call('ZSCORE', keys.held_back(key), jid)
  if score then redis.call('ZREM', keys.held_back(key), jid) end
  return score
end

-- A job that is held back has another priority.
function limits.change_priority(job, priority)
  local key = constraints.read(job.terms).key
  local score = key and tonumber(redis.call('ZSCORE', keys.held_back(key), job.jid))
  local since = score and priority_score.read_since(score, job.priority)
  if since then redis.call('ZADD', keys.held_back(key), priority_score.compute(priority, since), job.jid) end
end

-- As JSON: the key's concurrency limit with jobs that run, or its rate; and when the job is looked at again. nil for one that isn't held back.
-- @seldom
function limits.explain_hold(jid, queue, text)
  local own = json.parse_object(text)
  if type(own.key) ~= 'string' or not redis.call('ZSCORE', keys.held_back(own.key), jid) then return nil end
  local due = redis.call('ZSCORE', keys.scheduled(queue), jid)
  local said = '{"key":' .. cjson.encode(own.key) .. ',"until":' .. json.number(tonumber(due or 0) or 0)
  if type(own.limit) == 'number' and redis.call('ZCARD', keys.limit_running(own.key)) >= own.limit then
    return said .. ',"limit":' .. json.number(own.limit) .. ',"running":' .. json.texts(redis.call('ZRANGE', keys.limit_running(own.key), 0, MOST_SHOWN - 1)) .. '}'
  end
  if type(own.rate) ~= 'table' then return said .. '}' end
  return said .. ',"rate":' .. cjson.encode(own.rate) .. '}'
end
