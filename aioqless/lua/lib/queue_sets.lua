-- queue_sets: where in a queue a job stands: waiting, scheduled or held by dependencies.  (Running: locks.lua.)

local registered = {}

-- Make the queue known, by when it was first seen.
function queue_sets.register_queue(queue, now)
  if registered[queue] then return end
  if redis.call('ZADD', keys.queues(), 'NX', now, queue) == 1 then redis.call('ZADD', keys.stats_days(), 'LT', stats.start_of_day(now), queue) end
  registered[queue] = true
end

-- Into the work of a queue; the first one there wakes idle workers.
function queue_sets.add_waiting(queue, jid, score)
  local work = keys.waiting(queue)
  if redis.call('EXISTS', work) == 0 then events.publish_ready(queue) end
  redis.call('ZADD', work, score, jid)
end

function queue_sets.add_scheduled(queue, jid, due)
  local scheduled = keys.scheduled(queue)
  redis.call('ZADD', scheduled, due, jid)
  if redis.call('ZRANGE', scheduled, 0, 0)[1] == jid then events.publish_ready(queue) end
end

-- Into the queue at once, or when `due` has come; returns the state.
function queue_sets.add(queue, jid, priority, due, now)
  if due and due > now then
    queue_sets.add_scheduled(queue, jid, due)
    return 'scheduled'
  end
  queue_sets.add_waiting(queue, jid, priority_score.compute(priority, now))
  return 'waiting'
end

function queue_sets.add_depending(queue, jid, now) redis.call('ZADD', keys.depends(queue), now, jid) end

-- Out of every set of its queue, whatever its state says. Where others may have waited for a run to end, idle workers hear of it.
function queue_sets.remove(queue, ...)
  redis.call('ZREM', keys.waiting(queue), ...)
  if redis.call('ZREM', keys.locks(queue), ...) > 0 and config.is_limited(queue)
    and redis.call('EXISTS', keys.waiting(queue), keys.scheduled(queue)) > 0 then events.publish_ready(queue) end
  redis.call('ZREM', keys.scheduled(queue), ...)
  redis.call('ZREM', keys.depends(queue), ...)
end

-- Scheduled jobs whose time has come go to work, the earliest first.
function queue_sets.move_due(queue, now, most)
  if most <= 0 then return end
  local due = redis.call('ZRANGE', keys.scheduled(queue), '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
  for _, jid in ipairs(due) do
    local job = redis.call('HMGET', keys.job(jid), 'jid', 'priority', 'x-terms')
    redis.call('ZREM', keys.scheduled(queue), jid)
    if job[1] then
      queue_sets.add_waiting(queue, jid, job[3] and limits.take_held_score(job[3], jid) or priority_score.compute(tonumber(job[2]) or 0, now))
      record.set_fields(jid, 'state', 'waiting')
    end
  end
end

-- How many are scheduled although their time has come.
function queue_sets.count_due(queue, now) return redis.call('ZCOUNT', keys.scheduled(queue), '-inf', now) end
