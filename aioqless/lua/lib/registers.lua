-- registers: what is said about jobs elsewhere: workers' lists, the set of completed jobs, tags, counters; and templates.

local TEMPLATE = {'jid', 'klass', 'data', 'priority', 'tags', 'state', 'queue', 'type', 'interval', 'count', 'retries', 'backlog'}
local DEFAULTS = {data = '{}', priority = 0, tags = '[]', state = 'recur', type = 'interval', count = 0, retries = 5, backlog = 0}

function registers.held(here, worker)
  return contents.each(here, 'ZSCAN', function(jid)
    local job = redis.call('HMGET', keys.job(jid), 'state', 'worker')
    if job[1] ~= 'running' or job[2] ~= worker then
      findings.add('held-not-running', {jid = jid, worker = worker}, contents.out(here, jid))
    end
  end)
end

function registers.completed(here)
  return contents.each(here, 'ZSCAN', function(jid)
    if redis.call('HGET', keys.job(jid), 'state') ~= 'complete' then
      findings.add('entry-not-complete', {jid = jid}, contents.out(here, jid))
    end
  end)
end

function registers.tag(here, tag)
  if here.at == '0' and not redis.call('ZSCORE', keys.tags(), tag) then registers.miscounted(tag, nil) end
  return contents.each(here, 'ZSCAN', function(jid)
    for _, name in ipairs(json.parsed_list(redis.call('HGET', keys.job(jid), 'tags'))) do
      if name == tag then return end
    end
    findings.add('tag-not-on-job', {jid = jid, tag = tag}, function()
      redis.call('ZREM', here.key, jid)
      registers.recount(tag)
    end)
  end)
end

function registers.counters(here)
  return contents.each(here, 'ZSCAN', function(tag, count)
    if tonumber(count) ~= redis.call('ZCARD', keys.tag(tag)) then registers.miscounted(tag, tonumber(count)) end
  end)
end

function registers.miscounted(tag, count)
  local jobs = redis.call('ZCARD', keys.tag(tag))
  findings.add('tag-count', {tag = tag, count = count, jobs = jobs}, function() registers.recount(tag) end)
end

function registers.recount(tag) redis.call('ZADD', keys.tags(), redis.call('ZCARD', keys.tag(tag)), tag) end

function registers.day(here)
  local counters = redis.call('HMGET', here.key, 'failed', 'failures')
  local failed, failures = tonumber(counters[1]) or 0, tonumber(counters[2]) or 0
  local right = math.max(0, math.min(failed, failures))
  if failed ~= right then
    findings.add('failed-count', {key = here.key, failed = failed, failures = failures}, function()
      redis.call('HSET', here.key, 'failed', right)
    end)
  end
  return 1
end

function registers.answer(here)
  if redis.call('TTL', here.key) == -1 then
    findings.add('answer-forever', {key = here.key}, function() redis.call('EXPIRE', here.key, 120) end)
  end
  return 1
end

function registers.pruned(here)
  return contents.each(here, 'HSCAN', function(field)
    local queue = string.match(field, '^%l+:(.*)$')
    if queue and not redis.call('ZSCORE', keys.queues(), queue) then
      findings.add('pruned-unknown', {queue = queue}, function() redis.call('HDEL', here.key, field) end)
    end
  end)
end

function registers.template(here, jid)
  local values, missing, written = redis.call('HMGET', here.key, unpack(TEMPLATE)), {}, {}
  local queue, interval = values[7], tonumber(values[9])
  for i, name in ipairs(TEMPLATE) do
    if not values[i] or (name == 'interval' and not (interval and interval > 0)) then
      missing[#missing + 1] = name
      local default = name == 'jid' and jid or DEFAULTS[name]
      if default then written[#written + 1], written[#written + 2] = name, default end
    end
  end
  local turn = queue and redis.call('ZSCORE', keys.recur(queue), jid)
  local hopeless = #missing > #written / 2
  if #missing > 0 then
    findings.add('template-fields', {jid = jid, fields = missing}, (turn or #written > 0) and function()
      if #written > 0 then redis.call('HSET', here.key, unpack(written)) end
      if hopeless and turn then redis.call('ZREM', keys.recur(queue), jid) end
    end)
  end
  if not turn and not hopeless then
    findings.add('template-nowhere', {jid = jid, queue = queue}, function() redis.call('ZADD', keys.recur(queue), here.now + interval, jid) end)
  end
  return 2
end
