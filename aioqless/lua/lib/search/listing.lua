-- listing: lists and counts of jobs by state. Read-only: a scheduled job that is due counts as
-- waiting, although a pop has yet to move it.

local COUNTS = '{"name":%s,"waiting":%d,"running":%d,"stalled":%d,"scheduled":%d,"depends":%d,'
  .. '"recurring":%d,"paused":%s%s}'

function listing.count_states(queue, now, paused, day)
  local locked = redis.call('ZCARD', keys.locks(queue))
  local scheduled = redis.call('ZCARD', keys.scheduled(queue))
  local stalled = locked > 0 and redis.call('ZCOUNT', keys.locks(queue), 0, now) or 0
  local due = scheduled > 0 and queue_sets.count_due(queue, now) or 0
  return string.format(COUNTS, cjson.encode(queue), redis.call('ZCARD', keys.waiting(queue)) + due,
    locked - stalled, stalled,
    scheduled - due, redis.call('ZCARD', keys.depends(queue)),
    redis.call('ZCARD', keys.recurring(queue)), tostring(paused),
    day and ',' .. stats.encode_totals(day, queue) or '')
end

-- The first waiting job and its score, fields of it; the first scheduled job and when it is due.
function listing.read_next(queue)
  local top = redis.call('ZRANGE', keys.waiting(queue), -1, -1, 'WITHSCORES')
  local job = top[1] and redis.call('HMGET', keys.job(top[1]), 'priority', 'time', 'x-turn',
    'klass', 'x-declined') or {}
  return top, job, redis.call('ZRANGE', keys.scheduled(queue), 0, 0, 'WITHSCORES')
end

-- For how long the first waiting or due job, of listing.read_next, could have been running.
function listing.find_lag(now, top, job, scheduled)
  local since = tonumber(scheduled[2]) or now
  if top[1] then
    local _, ready = turns.parse(job[3] or nil)
    since = math.min(since, ready
      or priority_score.read_since(tonumber(top[2]), tonumber(job[1]) or 0)
      or tonumber(job[2]) or now)
  end
  return math.max(0, now - since)
end

-- What may keep the next job of a queue from running, as JSON.
function listing.describe_delay(queue, now)
  local rate, starts, next_start = config.rate(queue) or {0, 0}, 0, 0
  if rate[1] > 0 then
    starts = rates.count('q:' .. queue, rate, now)
    next_start = rates.find_next_start('q:' .. queue, rate, 0, now)
  end
  local limit = config.max_concurrency(queue)
  local top, job, scheduled = listing.read_next(queue)
  local klass, declined = job[4], job[5]
  if not declined and scheduled[1] then
    klass, declined = unpack(redis.call('HMGET', keys.job(scheduled[1]), 'klass', 'x-declined'))
  end
  return '{"lag":' .. json.number(listing.find_lag(now, top, job, scheduled))
    .. ',"running":' .. (limit > 0 and redis.call('ZCOUNT', keys.locks(queue), now, '+inf') or 0)
    .. ',"limit":' .. json.number(limit)
    .. ',"rate":[' .. json.number(rate[1]) .. ',' .. json.number(rate[2]) .. '],"starts":' .. starts
    .. ',"next_start":' .. json.number(next_start)
    .. ',"klass":' .. cjson.encode(declined and klass or '') .. ',"declined":'
      .. json.number(tonumber(declined or 0) or 0) .. '}'
end

function listing.list_state(state, queue, now, offset, count)
  if state == 'complete' then
    return listing.read_page(keys.completed(), 0, math.huge, offset, count, 'REV')
  end
  args.string('queue', queue)
  if state == 'waiting' then return listing.list_waiting(queue, now, offset, count) end
  if state == 'running' then
    return listing.read_page(keys.locks(queue),
      redis.call('ZCOUNT', keys.locks(queue), '-inf', '(' .. json.number(now)), math.huge, offset,
      count)
  end
  if state == 'stalled' then
    return listing.read_page(keys.locks(queue), 0,
      redis.call('ZCOUNT', keys.locks(queue), '-inf', now), offset, count)
  end
  if state == 'scheduled' then
    return listing.read_page(keys.scheduled(queue), queue_sets.count_due(queue, now), math.huge,
      offset, count)
  end
  if state == 'depends' then
    return listing.read_page(keys.depends(queue), 0, math.huge, offset, count)
  end
  if state == 'recurring' then
    return listing.read_page(keys.recurring(queue), 0, math.huge, offset, count)
  end
  errors.bad_argument('state', state,
    'must be one of waiting, running, stalled, scheduled, depends, recurring, complete')
end

-- The jobs in -work, then those that are due.
function listing.list_waiting(queue, now, offset, count)
  local jids = listing.read_page(keys.waiting(queue), 0, math.huge, offset, count, 'REV')
  local from = math.max(0, offset - redis.call('ZCARD', keys.waiting(queue)))
  for _, jid in ipairs(listing.read_page(keys.scheduled(queue), 0,
    queue_sets.count_due(queue, now), from, count - #jids)) do
    jids[#jids + 1] = jid
  end
  return jids
end

-- JSON: the queue of a waiting job, how many are ahead of it in listing.list_waiting, and how many
-- of the queue were popped today.
function listing.describe_position(jid, now)
  local queue = redis.pcall('HGET', keys.job(jid), 'queue')
  if type(queue) ~= 'string' then return 'null' end
  local ahead = redis.call('ZREVRANK', keys.waiting(queue), jid)
  if not ahead then
    local due = redis.call('ZSCORE', keys.scheduled(queue), jid)
    if not due or tonumber(due) > now then return 'null' end
    ahead = redis.call('ZCARD', keys.waiting(queue))
      + redis.call('ZRANK', keys.scheduled(queue), jid)
  end
  return '{"queue":' .. cjson.encode(queue) .. ',"ahead":' .. ahead .. ',"popped":'
    .. json.number(tonumber(redis.call('HGET', keys.stats('wait', clock.start_of_day(now), queue),
      'total')) or 0) .. '}'
end

-- At most `count` members of a sorted set, `offset` behind the rank `first`, all below the rank
-- `limit`. By rank, since paging by score takes longer with each page.
function listing.read_page(key, first, limit, offset, count, ...)
  local last = math.min(first + offset + count, limit) - 1
  if last < first + offset then return {} end
  return redis.call('ZRANGE', key, first + offset, last, ...)
end

function listing.list_worker_jobs(worker, now)
  local jobs = redis.call('ZRANGE', keys.worker_jobs(worker), now + 8640000, now, 'BYSCORE', 'REV',
    'LIMIT', 0, constants.MAX_BATCH)
  local stalled = redis.call('ZRANGE', keys.worker_jobs(worker), now, 0, 'BYSCORE', 'REV', 'LIMIT',
    0, constants.MAX_BATCH)
  return '{"jobs":' .. json.texts(jobs) .. ',"stalled":' .. json.texts(stalled) .. '}'
end
