-- recurring_jobs: create, delete and show recurring jobs. (Changes: recurring_update.lua. Their
-- instances: recurring_spawn.lua, cron_jobs.lua.) Those with an interval are stored where live
-- clients store theirs, those with a cron expression under our own prefix, where no peer meets
-- them.

-- A recurring job: its hash, its queue, the set with its schedule, and when it is due. nil if there
-- is none.
function recurring_jobs.find(jid)
  local key, turns = keys.cron(jid), keys.ticks()
  local f = redis.call('HMGET', key, 'queue', 'x-paused', 'x-ended')
  if not f[1] then
    key = keys.template(jid)
    f = redis.call('HMGET', key, 'queue', 'x-paused', 'x-ended')
    turns = keys.recurring(f[1] or '')
  end
  if not f[1] then return nil end
  local due = tonumber(redis.call('ZSCORE', turns, jid))  -- a peer that puts it again resumes it
  return {
    jid = jid, key = key, queue = f[1], turns = turns, due = due, paused = f[2] and not due,
    ended = f[3] and not f[2] and not due, is_cron = key == keys.cron(jid),
  }
end

function recurring_jobs.require(jid)
  local template = recurring_jobs.find(jid)
  if not template then errors.raise('NOJOB', 'there is no such recurring job', {jid = jid}) end
  return template
end

-- Create or replace a recurring job. An existing one keeps its count, and stays paused; its
-- schedule restarts. One that code declares keeps its schedule, too, unless it changed.
function recurring_jobs.put(recur)
  if recur.constraints then job_constraints.parse(recur.constraints) end
  local jid, former = recur.jid, recurring_jobs.find(recur.jid)
  local key = recur.cron and keys.cron(jid) or keys.template(jid)
  local turns = recur.cron and keys.ticks() or keys.recurring(recur.queue)
  local kept = former and recur.declared and recurring_jobs.has_same_schedule(former, recur)
  local due = kept and former.due or recur.next
  if former and former.key ~= key then
    redis.call('RENAME', former.key, key)
    redis.call('HDEL', key, 'interval', 'x-first', 'cron', 'timezone')
  end
  redis.call('HSET', key, 'jid', jid, 'klass', recur.klass, 'data', recur.data, 'priority',
    recur.priority or 0,
    'tags', json.texts(recur.tags or {}), 'state', 'recur', 'queue', recur.queue, 'retries',
    recur.retries or constants.DEFAULT_RETRIES,
    'backlog', recur.backlog or 0)
  if recur.cron then
    redis.call('HSET', key, 'type', 'cron', 'cron', recur.cron, 'timezone', recur.timezone)
  else
    redis.call('HSET', key, 'type', 'interval', 'interval', recur.interval)
    local first = recur.next > recur.now + recur.interval and recur.next or 0
    redis.call(kept and 'HSETNX' or 'HSET', key, 'x-first', first)
  end
  redis.call('HSETNX', key, 'count', 0)
  recurring_end.store(key, {
    ['x-until'] = recur.ends or 'none', ['x-max-runs'] = recur.max_runs or 'none',
    ['x-jitter'] = recur.jitter or 'none', ['x-expires-in'] = recur.expires_in or 'none',
  })
  if recur.constraints then
    redis.call('HSET', key, 'x-constraints', recur.constraints)
  else
    redis.call('HDEL', key, 'x-constraints')
  end
  if recur.backlog then
    redis.call('HDEL', key, 'x-coalesce')
  else
    redis.call('HSET', key, 'x-coalesce', 1)
  end
  if recur.declared then
    redis.call('HSET', key, 'x-declared', recur.now)
  else
    redis.call('HDEL', key, 'x-declared')
  end
  if former and not (former.turns == turns and former.due == due) then
    redis.call('ZREM', former.turns, jid)
  end
  if not (former and former.paused) then
    redis.call('HDEL', key, 'x-paused')
    recurring_end.schedule_or_finish(key, turns, recur.queue, jid, due, recur.now)
  end
  if former and former.paused and not kept then redis.call('HSET', key, 'x-was-due', recur.next) end
  queue_sets.register_queue(recur.queue, recur.now)
  return not former and 'made' or kept and 'kept' or 'retimed'
end

function recurring_jobs.has_same_schedule(former, recur)
  if former.is_cron ~= (recur.cron ~= nil) then return false end
  local f = redis.call('HMGET', former.key, 'interval', 'cron', 'timezone')
  return recur.cron and f[2] == recur.cron and f[3] == recur.timezone
    or not recur.cron and tonumber(f[1]) == recur.interval
end

function recurring_jobs.remove(jid)
  local queue = redis.call('HGET', keys.template(jid), 'queue')
  if queue then redis.call('ZREM', keys.recurring(queue), jid) end
  redis.call('ZREM', keys.ticks(), jid)
  redis.call('ZREM', keys.paused_recurring(), jid)
  redis.call('UNLINK', keys.template(jid), keys.cron(jid))
  return '1'
end

-- Delete those of the jids that code had declared; return them.
function recurring_jobs.remove_undeclared(jids)
  local gone = {}
  for _, jid in ipairs(jids) do
    local template = recurring_jobs.find(jid)
    if template and redis.call('HEXISTS', template.key, 'x-declared') == 1 then
      recurring_jobs.remove(jid)
      gone[#gone + 1] = jid
    end
  end
  return gone
end

-- JSON; nil if there is no such recurring job.
function recurring_jobs.view(jid)
  local template = recurring_jobs.find(jid)
  if not template then return nil end
  local f = redis.call('HMGET', template.key, 'klass', 'priority', 'interval', 'retries', 'count',
    'data', 'tags', 'backlog', 'x-coalesce',
    'cron', 'timezone', 'x-declared', 'x-expires-in', 'x-constraints')
  return '{"jid":' .. cjson.encode(jid) .. ',"klass":' .. cjson.encode(f[1] or '')
    .. ',"state":"recur","queue":' .. cjson.encode(template.queue)
    .. ',"priority":' .. json.number(priority_score.negate(tonumber(f[2]) or 0))
    .. ',"interval":' .. (template.is_cron and 'null' or json.number(tonumber(f[3]) or 0))
    .. ',"retries":' .. json.number(tonumber(f[4]) or 0) .. ',"count":'
      .. json.number(tonumber(f[5]) or 0)
    .. ',"data":' .. cjson.encode(f[6] or 'null') .. ',"tags":' .. json.clean_list(f[7])
    .. ',"backlog":' .. json.number(tonumber(f[8]) or 0) .. ',"coalesce":'
      .. tostring(f[9] ~= false and tonumber(f[8]) == 0)
    .. ',"cron":' .. (f[10] and cjson.encode(f[10]) or 'null') .. ',"timezone":'
      .. (f[11] and cjson.encode(f[11]) or 'null')
    .. ',"paused":' .. tostring(template.paused and true or false) .. ',"declared":'
      .. (f[12] and json.number(tonumber(f[12]) or 0) or 'null')
    .. ',"next":' .. (template.due and json.number(template.due) or 'null') .. ',"expires_in":'
      .. (f[13] and json.number(tonumber(f[13]) or 0) or 'null')
    .. ',"constraints":' .. cjson.encode(f[14] or cjson.null)
    .. recurring_end.encode(template) .. '}'
end

-- JSON: a page of the recurring jobs with an interval in a queue; or of those with a cron
-- expression, paused and ended ones of both kinds last.
function recurring_jobs.list_page(queue, offset, count)
  local jids
  if queue then
    jids = listing.read_page(keys.recurring(queue), 0, math.huge, offset, count)
  else
    jids = listing.read_page(keys.ticks(), 0, math.huge, offset, count)
    local from = math.max(0, offset - redis.call('ZCARD', keys.ticks()))
    for _, jid in ipairs(listing.read_page(keys.paused_recurring(), 0, math.huge, from,
      count - #jids)) do
      jids[#jids + 1] = jid
    end
  end
  local views = {}
  for _, jid in ipairs(jids) do views[#views + 1] = recurring_jobs.view(jid) end
  return json.list(views)
end
