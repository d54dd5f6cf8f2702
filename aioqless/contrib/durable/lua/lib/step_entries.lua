-- step_entries: write the entries of keys.steps: `number time attempt value`, by `kind:name`. The
-- number rises with each entry, `.number` is the latest; `.size` is that of all values in bytes.

local OWN_FIELDS = 2

-- Store an entry of a job. Only a cursor is replaced.
function step_entries.store(job, kind, name, value, now)
  local key, field = keys.steps(job.jid), kind .. ':' .. name
  if redis.call('HEXISTS', keys.job(job.jid), 'x-steps') == 0 then steps.begin(job.jid, now) end
  local former = redis.call('HGET', key, field)
  if former and kind ~= 'cursor' then return end
  local attempt = math.max(1, job.retries - job.remaining + 1)
  local number = former and steps.read_number(former)
    or (tonumber(redis.call('HGET', key, '.number')) or 0) + 1
  local entry = string.format('%d %.3f %d ', number, now, attempt) .. value
  step_entries.check_limits(key, name, not former, #entry - #(former or ''))
  redis.call('HSET', key, field, entry)
  redis.call('HINCRBY', key, '.size', #entry - #(former or ''))
  if former then return end
  redis.call('HSET', key, '.number', number)
  history.append(job.jid, job, now, kind, cjson.encode({name = name, attempt = attempt}))
end

-- Refuse an entry beyond the limits of a job.
function step_entries.check_limits(key, name, is_new, bytes)
  local most, size = config.steps_limits()
  if is_new and redis.call('HLEN', key) - OWN_FIELDS >= most then
    errors.bad_argument('name', name, 'is one step more than the option max-steps allows')
  end
  if (tonumber(redis.call('HGET', key, '.size')) or 0) + bytes > size then
    errors.bad_argument('name', name,
      'makes the steps of its job larger than the option max-steps-size allows')
  end
end
