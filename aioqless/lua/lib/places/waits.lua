-- waits: jobs that are parked: scheduled until something that they wait for is there. What a run
-- waits for is stored among its steps, as `kind:name`. The job's field `x-parked` has the fence of
-- the run that parked it, and what it waits for: any other run makes it void.

local LOOKS_EVERY = 3600
local LOOKS_FOR_CALLS_EVERY = 60  -- another qless client may have ended a child

-- When a job is due that waits for the first of these, unless something else ends a wait before.
function waits.find_due(job, fields, now)
  local due = now + LOOKS_EVERY
  for _, field in ipairs(fields) do due = math.min(due, waits.read_due(job, field, now)) end
  return due
end

-- A job is scheduled since it waits for one of these. Its wait for a worker counts from then on.
function waits.store(job, fields, due)
  record.set_fields(job.jid, 'time', record.format_time(due), 'x-parked',
    (job.fence or '0') .. ' ' .. json.texts(fields))
end

-- When a wait is over, as far as it is known. Children that other qless clients ended are found.
function waits.read_due(job, field, now)
  local kind, name = string.match(field, '^(%l+):(.*)$')
  local found = redis.call('HMGET', keys.steps(job.jid), field, 'signal:' .. (name or ''))
  if not found[1] or kind == 'wait' and found[2] then return now end
  if kind == 'call' then
    local has_ended = call_outcomes.note_outcome(job, name, found[1], now)
    return has_ended and now or now + LOOKS_FOR_CALLS_EVERY
  end
  return tonumber(steps.read_value(found[1])) or now + LOOKS_EVERY
end

-- Something that a job may wait for is there: notify its worker, or make it due if it is parked.
function waits.wake(job, field, now)
  if job.state == 'running' then
    events.publish_to_worker(job.worker,
      {event = 'signaled', jid = job.jid, name = string.match(field, ':(.*)$')})
  end
  if job.state ~= 'scheduled' then return end
  local fields = waits.read_fields(job.jid, job.fence)
  if not fields or job.constraints and held_jobs.explain(job.jid, job.queue, job.constraints) then
    return
  end
  for _, each in ipairs(json.parse_texts(fields)) do
    if each == field then
      redis.call('ZREM', keys.scheduled(job.queue), job.jid)
      record.set_fields(job.jid, 'state', 'waiting', 'time', record.format_time(now))
      return placement.add(job.queue, job.jid, job.priority, nil, now, job.constraints)
    end
  end
end

-- What a scheduled job waits for, as JSON; nil if it isn't parked.
function waits.read_fields(jid, fence)
  local by, fields = string.match(redis.call('HGET', keys.job(jid), 'x-parked') or '',
    '^(%S+) (.*)$')
  return by == (fence or '0') and fields or nil
end

-- JSON: what a scheduled job waits for, and until when; nil if it isn't parked.
function waits.explain(jid, queue, fence)
  local fields = waits.read_fields(jid, fence)
  if not fields then return nil end
  local due = redis.call('ZSCORE', keys.scheduled(queue), jid)
  return '{"waits_for":' .. fields .. ',"until":' .. json.number(tonumber(due or 0) or 0) .. '}'
end
