-- queue_sets: the sets of a queue's jobs: waiting, scheduled, held by dependencies. (Running:
-- locks.lua.)

-- Add the queue to the known ones, by when it was first seen.
function queue_sets.register_queue(queue, now)
  if call.registered_queue == queue then return end
  if not redis.call('ZRANK', keys.queues(), queue) then
    redis.call('ZADD', keys.queues(), now, queue)
    redis.call('ZADD', keys.stats_days(), 'LT', stats.start_of_day(now), queue)
  end
  call.registered_queue = queue
end

-- Add to the waiting jobs; the first one wakes idle workers. `others`: whether there are any, if
-- the caller knows.
function queue_sets.add_waiting(queue, jid, score, others)
  local work = keys.waiting(queue)
  if others == nil then others = redis.call('EXISTS', work) == 1 end
  if not others then events.publish_ready(queue) end
  redis.call('ZADD', work, score, jid)
end

function queue_sets.add_scheduled(queue, jid, due)
  local scheduled = keys.scheduled(queue)
  redis.call('ZADD', scheduled, due, jid)
  if redis.call('ZRANGE', scheduled, 0, 0)[1] == jid then events.publish_ready(queue) end
end

-- Add to the waiting jobs, or to the scheduled ones until `due`. Return the state. `constraints`:
-- those of the job, as JSON, if it has any.
function queue_sets.add(queue, jid, priority, due, now, constraints)
  if due and due > now then
    queue_sets.add_scheduled(queue, jid, due)
    return 'scheduled'
  end
  queue_sets.add_waiting(queue, jid,
    constraints and turns.enter(queue, jid, priority, constraints, now, now)
      or priority_score.compute(priority, now))
  return 'waiting'
end

function queue_sets.add_depending(queue, jid, now)
  redis.call('ZADD', keys.depends(queue), now, jid)
end

-- Remove jobs from all sets of their queue, whatever their state.
function queue_sets.remove(queue, ...)
  redis.call('ZREM', keys.waiting(queue), ...)
  queue_sets.remove_running(queue, ...)
  redis.call('ZREM', keys.scheduled(queue), ...)
  redis.call('ZREM', keys.depends(queue), ...)
end

-- Remove jobs from the running ones. Wake idle workers if a concurrency limit may have kept jobs
-- waiting.
function queue_sets.remove_running(queue, ...)
  if redis.call('ZREM', keys.locks(queue), ...) > 0 and config.max_concurrency(queue) > 0
    and redis.call('EXISTS', keys.waiting(queue), keys.scheduled(queue)) > 0 then
    events.publish_ready(queue)
  end
end

-- Move scheduled jobs that are due to the waiting ones, earliest first.
function queue_sets.move_due(queue, now, most)
  if most <= 0 then return end
  local due = redis.call('ZRANGE', keys.scheduled(queue), '-inf', now, 'BYSCORE', 'LIMIT', 0, most,
    'WITHSCORES')
  for i = 1, #due, 2 do
    local jid = due[i]
    local job = redis.call('HMGET', keys.job(jid), 'jid', 'priority', 'x-constraints')
    redis.call('ZREM', keys.scheduled(queue), jid)
    if job[1] then
      local priority = tonumber(job[2]) or 0
      local held = job[3] and held_jobs.take_score(job[3], jid)
      if not held then
        call.moved = call.moved or {}  -- when the jobs that this call moved were due
        call.moved[jid] = tonumber(due[i + 1])
      end
      local turn = job[3] and (held and turns.resume(queue, jid, priority, job[3], now)
        or not held and turns.enter(queue, jid, priority, job[3], tonumber(due[i + 1]), now))
      queue_sets.add_waiting(queue, jid, turn or held or priority_score.compute(priority, now))
      record.set_fields(jid, 'state', 'waiting')
    end
  end
end

-- Since when a waiting job could have been popped; nil if it isn't known.
function queue_sets.read_ready_since(jid, score, priority)
  return call.moved and call.moved[jid]
    or priority_score.read_since(tonumber(score), tonumber(priority) or 0)
end

-- The number of scheduled jobs that are due.
function queue_sets.count_due(queue, now)
  return redis.call('ZCOUNT', keys.scheduled(queue), '-inf', now)
end
