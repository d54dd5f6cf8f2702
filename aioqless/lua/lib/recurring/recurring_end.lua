-- recurring_end: recurring jobs end after a time or a number of instances. One that has ended is no
-- longer scheduled, so that peers, which know nothing of this, put no instances either. It stays,
-- with its count: else it would start again when it is put or declared again.

-- Whether no instance may be put as of `due`. Instances that peers put count, too; those put by
-- hand, and jids that were skipped, don't.
function recurring_end.is_over(key, due)
  local f = redis.call('HMGET', key, 'x-until', 'x-max-runs', 'count', 'x-uncounted')
  local last, most = tonumber(f[1]), tonumber(f[2])
  return last and due > last
    or most and (tonumber(f[3]) or 0) - (tonumber(f[4]) or 0) >= most or false
end

-- Remove it from its schedule, and list it with the paused ones.
function recurring_end.finish(key, turns, jid, now)
  redis.call('ZREM', turns, jid)
  redis.call('HSET', key, 'x-ended', now)
  redis.call('ZADD', keys.paused_recurring(), 'NX', now, jid)
end

-- Schedule the next instance, or end.
function recurring_end.schedule_or_finish(key, turns, queue, jid, due, now)
  if recurring_end.is_over(key, due) then return recurring_end.finish(key, turns, jid, now) end
  redis.call('HDEL', key, 'x-ended')
  redis.call('ZREM', keys.paused_recurring(), jid)
  recurring_end.schedule_next(turns, queue, jid, due)
end

-- Store limits, jitter and the time to start in: a number each; `none` removes it.
function recurring_end.store(key, limits)
  for name, value in pairs(limits) do
    if value == 'none' then
      redis.call('HDEL', key, name)
    else
      redis.call('HSET', key, name, value)
    end
  end
end

-- Limits and jitter, as members of an object.
function recurring_end.encode(template)
  local f = redis.call('HMGET', template.key, 'x-until', 'x-max-runs', 'count', 'x-uncounted',
    'x-jitter')
  local last, most = tonumber(f[1]), tonumber(f[2])
  local left = most and math.max(0, most - (tonumber(f[3]) or 0) + (tonumber(f[4]) or 0))
  return ',"until":' .. (last and json.number(last) or 'null') .. ',"max_runs":'
    .. (most and json.number(most) or 'null') .. ',"runs_left":'
    .. (left and json.number(left) or 'null') .. ',"jitter":' .. json.number(tonumber(f[5]) or 0)
    .. ',"ended":' .. tostring(template.ended and true or false)
end

-- Schedule the next instance, and wake those that wait for a later one: a worker of the queue, or
-- the callers of ticks.
function recurring_end.schedule_next(turns, queue, jid, due)
  if redis.call('ZADD', turns, 'CH', due, jid) == 0
    or redis.call('ZRANGE', turns, 0, 0)[1] ~= jid then
    return
  end
  if turns == keys.ticks() then
    redis.call('PUBLISH', keys.ticks_channel(), '')
  else
    events.publish_ready(queue)
  end
end
