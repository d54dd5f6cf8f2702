-- recurring_spawn: put instances of recurring jobs with an interval.

local MOST_PASSED = 100

-- Create due instances, at most `most`; later calls create the others.
function recurring_spawn.run(queue, now, most)
  if most <= 0 then return end
  local due = redis.call('ZRANGE', keys.recurring(queue), '-inf', now, 'BYSCORE', 'LIMIT', 0, most,
    'WITHSCORES')
  if #due == 0 or recurring_spawn.is_memory_full() then return end
  local passed = {}
  for i = 1, #due, 2 do
    most = most - recurring_spawn.spawn_due(queue, due[i], math.floor(tonumber(due[i + 1])), now,
      most, passed)
    if most <= 0 then return end
  end
end

-- Create the instances of one recurring job that are due since `tick`; return their number.
function recurring_spawn.spawn_due(queue, jid, tick, now, most, passed)
  local f = redis.call('HMGET', keys.template(jid), 'klass', 'data', 'priority', 'tags', 'retries',
    'interval', 'backlog', 'x-coalesce', 'x-until', 'x-max-runs', 'x-jitter')
  local key, limited = keys.template(jid), f[9] or f[10]
  local last = math.min(now, tonumber(f[9]) or now)
  local interval, backlog = tonumber(f[6]), tonumber(f[7]) or 0
  if not f[1] or not interval or interval <= 0 then return 0 end
  local missed = math.max(0, (last - tick) / interval)
  if backlog > 0 and missed > backlog then
    tick = tick + math.ceil(missed - backlog) * interval
  elseif backlog == 0 and f[8] then
    tick = tick + math.floor(missed) * interval
  end
  local made = 0
  while tick <= last and made < most and not (limited and recurring_end.is_over(key, tick))
    and recurring_spawn.create_instance(key, jid, queue, f, tick, now, f[11], passed) do
    tick = tick + interval
    made = made + 1
  end
  if limited and recurring_end.is_over(key, tick) then
    recurring_end.finish(key, keys.recurring(queue), jid, now)
  else
    redis.call('ZADD', keys.recurring(queue), tick, jid)
  end
  return made
end

-- Create an instance as of `tick`, delayed by up to `jitter` seconds, from the hash `key` with the
-- fields `f`. Return its jid; if its unique key is taken, that job's; nil if none could be created.
-- `passed`: the jids in use that this call has passed over.
function recurring_spawn.create_instance(key, template, queue, f, tick, now, jitter, passed)
  local own = redis.call('HMGET', key, 'x-constraints', 'x-expires-in')
  local encoded, expires_in = own[1], tonumber(own[2])
  local alone = job_constraints.read(encoded).unique
  local other = alone and uniqueness.find_holder(alone, now)
  if other then return other end
  local jid = recurring_spawn.find_free_jid(key, template, passed)
  if not jid then return nil end
  local due = tick + recurring_spawn.compute_delay(jid, tonumber(jitter) or 0)
  local priority, retries, tags = tonumber(f[3]) or 0, tonumber(f[5]) or 0, json.parse_texts(f[4])
  local time = record.format_time(tick)
  record.set_fields(jid, 'jid', jid, 'klass', f[1], 'data', f[2], 'priority', priority, 'tags',
    json.texts(tags), 'state', due > now and 'scheduled' or 'waiting',
    'queue', queue, 'retries', retries, 'remaining', retries,
    'time', time, 'spawned_from_jid', template,
    'history', history.encode_put(time, cjson.encode(queue)))
  if expires_in then record.set_fields(jid, 'x-expiry', due + expires_in) end
  if encoded then
    stored_constraints.apply(jid, encoded, job_constraints.read(encoded), nil, now)
  end
  tagging.attach(jid, tags, now)
  if due > now then
    queue_sets.add_scheduled(queue, jid, due)
  else
    local score = encoded and turns.enter(queue, jid, priority, encoded, due, now)
      or priority_score.compute(priority, due)
    if encoded then bulks.rejoin(queue, jid, encoded, score) end
    queue_sets.add_waiting(queue, jid, score)
  end
  return jid
end

-- A part of the jitter. Redis' random numbers are the same in each call; a digest of the jid isn't.
function recurring_spawn.compute_delay(jid, jitter)
  if jitter <= 0 then return 0 end
  return tonumber(string.sub(redis.sha1hex(jid), 1, 8), 16) / 4294967296 * jitter
end

-- The next instance's jid: the recurring job's and a number. Jids in use, after a recurring job was
-- deleted and created again, are skipped: those jobs may be running. If there are too many, return
-- nil; later calls continue.
function recurring_spawn.find_free_jid(key, template, passed)
  while #passed < MOST_PASSED do
    local jid = template .. '-' .. string.format('%.0f', redis.call('HINCRBY', key, 'count', 1))
    if redis.call('EXISTS', keys.job(jid)) == 0 then return jid end
    redis.call('HINCRBY', key, 'x-uncounted', 1)
    passed[#passed + 1] = jid
  end
end

-- At maxmemory nothing new is created, so that existing jobs can be drained.
function recurring_spawn.is_memory_full()
  local memory = redis.pcall('INFO', 'memory')
  if type(memory) == 'table' then return false end
  local most = tonumber(string.match(memory, 'maxmemory:(%d+)')) or 0
  return most > 0 and tonumber(string.match(memory, 'used_memory:(%d+)')) >= most
end
