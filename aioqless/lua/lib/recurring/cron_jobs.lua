-- cron_jobs: recurring jobs with a cron expression. Callers compute the times, since they know
-- calendars and time zones; the script compares and sets, so that each tick creates one instance
-- however many callers compute it.

-- Run a batch of ticks; all are checked before the first is applied. Return the instances' jids.
function cron_jobs.tick(each, now)
  local made = {}
  local refused = each(function(jid, tick, at, next)
    if next == tick or next < tick and tick <= now then
      errors.bad_argument('next', json.number(next), 'is not later than the tick')
    end
    made[#made + 1] = {jid, tick, at, next}
  end)
  if refused[1] then error(refused[1]) end
  local passed = {}
  for i, row in ipairs(made) do
    made[i] = cron_jobs.create_instance(row[1], row[2], row[3], row[4], passed, now)
  end
  return made
end

-- Create an instance as of `at`, or with an earlier `next` none, if the recurring job's tick is
-- still this one. Return its jid; '' if another caller was first, or too many jids are in use: then
-- later calls continue, since the tick stays.
function cron_jobs.create_instance(jid, tick, at, next, passed, now)
  if tonumber(redis.call('ZSCORE', keys.ticks(), jid)) ~= tick then return '' end
  if next < tick then
    recurring_end.schedule_next(keys.ticks(), nil, jid, next)
    return ''
  end
  local key = keys.cron(jid)
  local f = redis.call('HMGET', key, 'klass', 'data', 'priority', 'tags', 'retries', 'queue',
    'x-until', 'x-max-runs', 'x-jitter')
  local limited = f[7] or f[8]
  if limited and recurring_end.is_over(key, at) then
    recurring_end.finish(key, keys.ticks(), jid, now)
    return ''
  end
  local is_whole, instance = f[1] and f[6], nil
  if is_whole then
    queue_sets.register_queue(f[6], now)
    instance = recurring_spawn.create_instance(key, jid, f[6], f, at, now, f[9], passed)
  end
  if instance and limited and recurring_end.is_over(key, next) then
    recurring_end.finish(key, keys.ticks(), jid, now)
  elseif instance or not is_whole then
    redis.call('ZADD', keys.ticks(), next, jid)
  end
  return instance or ''
end

-- Remove due ticks whose recurring job is gone.
function cron_jobs.remove_orphans(now, offset)
  local late = cron_jobs.read_due(now, offset)
  for i = 1, #late, 2 do
    if redis.call('HEXISTS', keys.cron(late[i]), 'cron') == 0 then
      redis.call('ZREM', keys.ticks(), late[i])
    end
  end
end

function cron_jobs.read_due(now, offset)
  return redis.call('ZRANGE', keys.ticks(), '-inf', json.number(now), 'BYSCORE', 'LIMIT', offset,
    constants.MAX_DUE, 'WITHSCORES')
end

-- JSON: the ticks that are due from `offset` on, with what is needed to compute them, and when the
-- next one is due; and what this call did.
function cron_jobs.list_due(now, offset, answer, generation)
  local due, late = {}, cron_jobs.read_due(now, offset)
  for i = 1, #late, 2 do
    due[#due + 1] = recurring_review.encode_tick(late[i], late[i + 1])
  end
  local next = redis.call('ZRANGE', keys.ticks(), '(' .. json.number(now), '+inf', 'BYSCORE',
    'LIMIT', 0, 1, 'WITHSCORES')[2]
  return '{"now":' .. json.number(now) .. ',"made":' .. json.texts(answer.made) .. ',"due":'
    .. json.list(due)
    .. ',"next":' .. (next and json.number(tonumber(next)) or 'null')
    .. (generation and ',"lost":' .. tostring(declarations.is_lost(generation)) or '')
    .. (answer.review and recurring_review.encode(answer.review) or '') .. '}'
end
