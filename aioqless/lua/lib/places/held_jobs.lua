-- held_jobs: jobs that a limit doesn't admit. A held job moves to `-scheduled`, which peers
-- tolerate, so that it doesn't block those behind it in `-work`, and is listed by the key of one
-- limit that refuses it, with its score in `-work`. Whatever may let the first of a list start
-- moves it back to `-work`; the rest is found when the job is due. Refused by another
-- limit, it goes to that one's list.
--
-- The field `x-held` has the fence of the run before, since when the job has been held back, and
-- until when an overdue one keeps its share unless it is held back again or woken.

local LOOKS = 20
local LATER = 3600
local MOST_SHOWN = 10

function held_jobs.hold(job, own, limit, queue, score, due, now)
  local held = keys.held_back(limit.key)
  redis.call('ZADD', held, score, job.jid)
  local ahead = redis.call('ZREVRANK', held, job.jid)
  local known, fence = overdue_jobs.read(job.jid)
  local since = known and math.min(known.since, now) or now
  if ahead == 0 then
    overdue_jobs.note(own, limit, job.jid, score, since, now)
  elseif limit.limit and ahead >= limit.limit then
    due = now + LATER
  elseif limit.rate then
    local paused = math.max(0, (limits.read_pause(limit.key, now) or now) - now)
    due = math.max(due, paused
      + rates.find_next_start('k:' .. limit.key, limit.rate, ahead, now, limit.cost))
  end
  record.set_fields(job.jid, 'state', 'scheduled', 'worker', '', 'expires', 0,
    'x-held', overdue_jobs.format(fence, since, due))
  queue_sets.add_scheduled(queue, job.jid, due)
end

-- Keys of a job may admit more than before: wake the first job that each holds back. `full`: the
-- limit that admits none.
function held_jobs.wake_next(own, now, full)
  for _, limit in ipairs(own.limits or {}) do
    if limit ~= full then held_jobs.wake_first(limit.key, now) end
  end
end

function held_jobs.wake_first(key, now)
  for _ = 1, LOOKS do
    local top = redis.call('ZRANGE', keys.held_back(key), -1, -1, 'WITHSCORES')
    if not top[1] or held_jobs.wake(key, top[1], top[2], now) then return end
    redis.call('ZREM', keys.held_back(key), top[1])
  end
end

-- Move the first job that is held back to its place in the queue, or reschedule it if the limit is
-- still reached. Return false if the job isn't held back at all.
function held_jobs.wake(key, jid, score, now)
  local job = redis.call('HMGET', keys.job(jid), 'queue', 'x-constraints', 'priority')
  local own = job_constraints.read(job[2])
  local limit = job_constraints.find_limit(own, key)
  local scheduled = job[1] and limit and redis.call('ZSCORE', keys.scheduled(job[1]), jid)
  if not scheduled then return false end
  local due, held, fence = limits.find_due(limit, jid, score, true, now), overdue_jobs.read(jid)
  local since = held and held.since or now
  if due then
    overdue_jobs.note(own, limit, jid, score, since, now)
    if due < tonumber(scheduled) then
      record.set_fields(jid, 'x-held', overdue_jobs.format(fence, since, due))
      queue_sets.add_scheduled(job[1], jid, due)
    end
    return true
  end
  redis.call('ZREM', keys.scheduled(job[1]), jid)
  redis.call('ZREM', keys.held_back(key), jid)
  record.set_fields(jid, 'state', 'waiting', 'x-held', overdue_jobs.format(fence, since, now))
  score = own.fair and turns.resume(job[1], jid, tonumber(job[3]) or 0, job[2], now) or score
  if own.bulk then bulks.rejoin(job[1], jid, job[2], score) end
  queue_sets.add_waiting(job[1], jid, score)
  return true
end

-- The key that lists a job as held back, and its score there; nil for other jobs.
function held_jobs.find(own, jid)
  for _, limit in ipairs(own.limits or {}) do
    local score = redis.call('ZSCORE', keys.held_back(limit.key), jid)
    if score then return limit, score end
  end
  return nil
end

-- The score in `-work` of a job that was held back and is due; nil for other jobs. It is no longer
-- held back.
function held_jobs.take_score(text, jid)
  local limit, score = held_jobs.find(job_constraints.read(text), jid)
  if limit then redis.call('ZREM', keys.held_back(limit.key), jid) end
  return score
end

-- Update the score of a job that is held back.
function held_jobs.change_priority(job, priority)
  local own = job_constraints.read(job.constraints)
  local limit, score = held_jobs.find(own, job.jid)
  local since = limit and priority_score.read_since(tonumber(score), job.priority)
  local changed = limit and turns.change_priority(job, priority)
    or since and priority_score.compute(priority, since)
  if not changed then return end
  redis.call('ZADD', keys.held_back(limit.key), changed, job.jid)
  for _, each in ipairs(own.limits) do
    redis.call('ZADD', keys.overdue(each.key), 'XX', changed, job.jid)
  end
end

-- JSON: which limit holds a job back, how full it is, and when it is checked again; nil if it isn't
-- held back.
function held_jobs.explain(jid, queue, text, now)
  local limit, score = held_jobs.find(job_constraints.read(text), jid)
  if not limit then return nil end
  now = now or clock.now()
  local due = redis.call('ZSCORE', keys.scheduled(queue), jid)
  local paused = limits.read_pause(limit.key, now)
  local _, before = overdue_jobs.find_before(limit.key, jid, tonumber(score), now)
  local said = '{"key":' .. cjson.encode(limit.key) .. ',"until":'
    .. json.number(tonumber(due or 0) or 0)
    .. (paused and ',"paused_until":' .. json.number(paused) or '')
    .. (before and ',"behind":' .. cjson.encode(before) or '')
  if limit.limit then
    local running = redis.call('ZCARD', keys.limit_running(limit.key))
    said = said .. ',"limit":' .. json.number(limit.limit) .. ',"running_total":' .. running
    if running >= limit.limit then
      said = said .. ',"running":'
        .. json.texts(redis.call('ZRANGE', keys.limit_running(limit.key), 0, MOST_SHOWN - 1))
    end
  end
  if limit.rate then
    said = said .. ',"rate":' .. cjson.encode(limit.rate) .. ',"used":'
      .. json.number(rates.read_used('k:' .. limit.key, limit, now))
      .. (limit.cost and ',"cost":' .. json.number(limit.cost) or '')
  end
  return said .. '}'
end
