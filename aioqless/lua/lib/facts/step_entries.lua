-- step_entries: write the entries of keys.steps: `number time attempt value`, by `kind:name`. The
-- number rises with each entry, `.number` is the latest; `.size` is that of all values in bytes.

local OWN_FIELDS = 2

local REPLACED = {cursor = true, signal = true}
local ENDINGS = {wait = {'received', 'signal', 'timeout'}, sleep = {'slept'}}

-- Store an entry of a job. Only cursors, which keep their number, and signals are replaced.
function step_entries.store(job, kind, name, value, now)
  if redis.call('HEXISTS', keys.job(job.jid), 'x-steps') == 0 then steps.begin(job.jid, now) end
  local found = step_entries.read(job, kind, name)
  if found.former and not REPLACED[kind] then return end
  step_entries.write(job, kind, name, value, now, found, true)
end

-- Read an entry that may exist, and the fields of the job.
function step_entries.read(job, kind, name)
  local f = redis.call('HMGET', keys.steps(job.jid), kind .. ':' .. name, '.number', '.size')
  return {former = f[1], number = tonumber(f[2]) or 0, size = tonumber(f[3]) or 0}
end

function step_entries.write(job, kind, name, value, now, found, limited)
  local key, field, former = keys.steps(job.jid), kind .. ':' .. name, found.former
  local attempt = math.max(1, job.retries - job.remaining + 1)
  local number = kind == 'cursor' and former and steps.read_number(former) or found.number + 1
  local entry = string.format('%d %.3f %d ', number, now, attempt) .. value
  local size = found.size + #entry - #(former or '')
  if limited then step_entries.check_limits(key, name, not former, size) end
  redis.call('HSET', key, field, entry, '.number', math.max(number, found.number), '.size',
    string.format('%d', size))
  if former then return end
  history.append(job.jid, job, now, kind, cjson.encode({name = name, attempt = attempt}))
end

-- What a run waited for has come, or its time is over: put one entry in the place of another,
-- whatever the limits are by now.
function step_entries.replace(job, former, kind, name, value, now)
  step_entries.remove(keys.steps(job.jid), former .. ':' .. name)
  step_entries.write(job, kind, name, value, now, step_entries.read(job, kind, name))
end

function step_entries.remove(key, field)
  local entry = redis.call('HGET', key, field)
  if not entry then return end
  redis.call('HDEL', key, field)
  redis.call('HINCRBY', key, '.size', -#entry)
end

-- Refuse an entry with which a job would have this size, if that is beyond its limits.
function step_entries.check_limits(key, name, is_new, size_with_it)
  local most, size = config.steps_limits()
  if is_new and redis.call('HLEN', key) - OWN_FIELDS >= most then
    errors.bad_argument('name', name, 'is one step more than the option max-steps allows')
  end
  if size_with_it > size then
    errors.bad_argument('name', name,
      'makes the steps of its job larger than the option max-steps-size allows')
  end
end

-- Store a wait, unless an earlier run has. Return how it has ended and the entry of that; or its
-- kind, and the seconds that are left, if it has a deadline.
function step_entries.wait(job, kind, name, timeout, now)
  local key, field = keys.steps(job.jid), kind .. ':' .. name
  for _, ending in ipairs(ENDINGS[kind]) do
    local entry = redis.call('HGET', key, ending .. ':' .. name)
    if entry then return {ending, entry} end
  end
  if redis.call('HEXISTS', key, field) == 0 then
    step_entries.store(job, kind, name, timeout and json.number(now + timeout) or 'null', now)
  end
  local deadline = tonumber(steps.read_value(redis.call('HGET', key, field)))
  if not deadline or deadline > now then
    return {kind, deadline and json.number(deadline - now) or ''}
  end
  local ending = kind == 'sleep' and 'slept' or 'timeout'
  step_entries.replace(job, kind, ending, name, 'null', now)
  return {ending, redis.call('HGET', key, ending .. ':' .. name)}
end

-- A run has read a signal: from now on it stays, unless it was replaced meanwhile.
function step_entries.receive(job, name, number, now)
  local key = keys.steps(job.jid)
  local entry = redis.call('HGET', key, 'signal:' .. name)
  if not entry or steps.read_number(entry) ~= tonumber(number) then return end
  step_entries.remove(key, 'wait:' .. name)
  step_entries.replace(job, 'signal', 'received', name, steps.read_value(entry), now)
end

-- Store a signal. The first of a name stays, unless it is replaced before the job has received it.
function step_entries.signal(job, name, value, replace, now)
  local key = keys.steps(job.jid)
  local found = redis.call('HMGET', key, 'received:' .. name, 'signal:' .. name, 'timeout:' .. name,
    'wait:' .. name)
  if found[1] or found[2] and not replace then
    errors.raise('SIGNALED', found[1] and 'the job has received this signal'
      or 'the job has this signal already', {jid = job.jid, name = name})
  end
  local deadline = found[4] and not found[2] and tonumber(steps.read_value(found[4]))
  if found[3] or deadline and deadline <= now then
    errors.bad_state(job, 'the job no longer waits for this signal')
  end
  step_entries.store(job, 'signal', name, value, now)
end
