-- recurring_entries: check that each recurring job is scheduled, paused or at its end, and that
-- each entry is that of a recurring job.

local FIELDS = {
  'jid', 'klass', 'data', 'priority', 'tags', 'state', 'queue', 'type', 'count', 'retries',
  'backlog',
}
local DEFAULTS = {
  data = '{}', priority = 0, tags = '[]', state = 'recur', count = 0,
  retries = constants.DEFAULT_RETRIES, backlog = 0,
}

-- A recurring job's hash. `needs` is the field without which no instances can be made. Return the
-- missing fields, defaults to write, and what the hash holds.
function recurring_entries.read_fields(here, jid, kind, needs)
  local values, missing, written, hopeless = redis.call('HMGET', here.key, needs, unpack(FIELDS)),
    {}, {}, false
  local interval = tonumber(values[1])
  if not values[1] or (needs == 'interval' and not (interval and interval > 0)) then
    missing[1], hopeless = needs, true
  end
  for i, name in ipairs(FIELDS) do
    if not values[i + 1] then
      local default = name == 'jid' and jid or name == 'type' and kind or DEFAULTS[name]
      missing[#missing + 1] = name
      if default then
        written[#written + 1], written[#written + 2] = name, default
      else
        hopeless = true
      end
    end
  end
  return missing, written, hopeless, values[8] or nil, interval
end

-- `set` returns the key of the schedule. A recurring job that is neither scheduled nor at rest is
-- scheduled.
function recurring_entries.check(here, jid, kind, needs, set)
  local missing, written, hopeless, queue, interval = recurring_entries.read_fields(here, jid,
    kind, needs)
  local key = set(queue or '')
  local turn = redis.call('ZSCORE', key, jid)
  if #missing > 0 then
    findings.add('template-fields', {jid = jid, fields = missing},
      (turn or #written > 0) and function()
      if #written > 0 then redis.call('HSET', here.key, unpack(written)) end
      if hopeless and turn then redis.call('ZREM', key, jid) end
    end)
  end
  if turn and not hopeless and interval then
    recurring_entries.check_due(here, jid, key, tonumber(turn), interval)
  end
  if turn or hopeless then return 2 end
  local resting = redis.call('HMGET', here.key, 'x-paused', 'x-ended')
  local paused = resting[1] or resting[2]
  if not paused then
    findings.add('template-nowhere', {jid = jid, queue = queue},
      function() redis.call('ZADD', key, here.now + (interval or 0), jid) end)
  elseif not redis.call('ZSCORE', keys.paused_recurring(), jid) then
    findings.add('paused-unlisted', {jid = jid, queue = queue},
      function() redis.call('ZADD', keys.paused_recurring(), tonumber(paused) or here.now, jid) end)
  end
  return 2
end

-- Those of peers, without `x-first`, are not moved: their first run may be meant to be late.
function recurring_entries.check_due(here, jid, key, turn, interval)
  local f = redis.call('HMGET', here.key, 'x-first', 'count')
  local first = tonumber(f[1])
  local due = (first or (tonumber(f[2]) or 0) > 0)
    and recurring_review.find_due(turn, interval, first or 0, here.now)
  if due then
    findings.add('recurring-late', {jid = jid, next = turn, due = due},
      first and function() redis.call('ZADD', key, due, jid) end or nil)
  end
end

function recurring_entries.check_interval(here, jid)
  return recurring_entries.check(here, jid, 'interval', 'interval', keys.recurring)
end

function recurring_entries.check_cron(here, jid)
  return recurring_entries.check(here, jid, 'cron', 'cron', keys.ticks)
end

function recurring_entries.check_entry(here, queue, _, jid)
  if redis.call('HGET', keys.template(jid), 'queue') ~= queue then
    findings.add('entry-without-template', {jid = jid, queue = queue},
      key_entries.remove(here, jid))
  end
end

function recurring_entries.check_ticks(here)
  return key_entries.scan_members(here, 'ZSCAN', function(jid)
    if redis.call('EXISTS', keys.cron(jid)) == 0 then
      findings.add('entry-without-template', {jid = jid}, key_entries.remove(here, jid))
    end
  end)
end

-- A peer may have deleted a paused recurring job, or put it again, which resumes it.
function recurring_entries.check_paused(here)
  return key_entries.scan_members(here, 'ZSCAN', function(jid)
    local template = recurring_jobs.find(jid)
    if not (template and (template.paused or template.ended)) then
      findings.add('resting-not-paused', {jid = jid}, key_entries.remove(here, jid))
    end
  end)
end
