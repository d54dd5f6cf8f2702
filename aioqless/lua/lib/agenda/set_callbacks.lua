-- set_callbacks: put what the end of a job set puts, each once.

-- Put the callbacks of a closed set without open members, each once.
function set_callbacks.react(set, now)
  if redis.call('EXISTS', keys.members(set, 'open')) == 1 then return end
  local key = keys.set(set)
  local f = redis.call('HMGET', key, 'closed', 'name', 'then', 'when_ended')
  redis.call('HSET', key, 'touched', string.format('%.6f', now))
  if not f[1] then return end
  if f[3] and redis.call('EXISTS', keys.members(set, 'held'), keys.members(set, 'failed'),
    keys.members(set, 'canceled')) == 0 then
    redis.call('HDEL', key, 'then')
    redis.call('HSET', key, 'then_jid', set_callbacks.put(f[3], f[2] .. '-then-', set, now))
  end
  if f[4] then
    redis.call('HDEL', key, 'when_ended')
    redis.call('HSET', key, 'ended_jid',
      set_callbacks.put(f[4], f[2] .. '-ended-', set, now + 0.000001))
  end
end

-- Put a callback; return its jid.
function set_callbacks.put(text, prefix, number, now)
  local put, options = job_json.parse(text)
  while redis.call('EXISTS', keys.job(string.format('%s%d', prefix, number))) == 1 do
    number = number * 2
  end
  put.jid, put.now = string.format('%s%d', prefix, number), now
  return enqueue.write(put, options)
end
