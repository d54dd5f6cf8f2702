-- queue_sets: the sets of a queue's jobs: waiting, scheduled, held by dependencies. (Running:
-- locks.lua.)

local AHEAD = 600  -- seconds by which jobs of one priority may be ordered ahead of the clock

-- Add the queue to the known ones, by when it was first seen.
function queue_sets.register_queue(queue, now)
  if call.registered_queue == queue then return end
  if not redis.call('ZRANK', keys.queues(), queue) then
    redis.call('ZADD', keys.queues(), now, queue)
    stats_pruning.note_day(clock.start_of_day(now))
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

-- The score of a job that is ready now, behind those of its priority. Where the priority leaves too
-- few digits for the time, equal scores would be ordered by jid. (Where tenants have jobs, the
-- scores are their turns.)
function queue_sets.compute_last(queue, priority, now)
  if priority == 0 or redis.call('EXISTS', keys.turns(queue)) == 1 then
    return priority_score.compute(priority, now)
  end
  local gap = priority_score.compute_gap(priority)
  local last = redis.call('ZRANGE', keys.waiting(queue),
    priority_score.compute(priority, now + AHEAD), priority_score.compute(priority, now - gap),
    'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]
  local since = last and priority_score.read_since(tonumber(last), priority)
  return priority_score.compute(priority, since and math.max(now, since + gap) or now)
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

-- The number of scheduled jobs that are due.
function queue_sets.count_due(queue, now)
  return redis.call('ZCOUNT', keys.scheduled(queue), '-inf', now)
end

function queue_sets.is_paused(queue)
  return presence.has('paused') and redis.call('SISMEMBER', keys.paused(), queue) == 1
end
