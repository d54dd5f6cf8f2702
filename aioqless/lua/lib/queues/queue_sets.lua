-- queue_sets: the sets of a queue's jobs: waiting, scheduled, held by dependencies. (Running:
-- locks.lua.)

local AHEAD = 600  -- seconds by which jobs of one priority may be ordered ahead of the clock

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

-- Add to the waiting jobs, or to the scheduled ones until `due`; one of a bulk gathers then. Return
-- the state. `constraints`: those of the job, as JSON, if it has any.
function queue_sets.add(queue, jid, priority, due, now, constraints)
  if due and due > now then
    queue_sets.add_scheduled(queue, jid, due)
    return 'scheduled'
  end
  local own = constraints and bulks.read(constraints)
  if own then return bulks.gather(queue, jid, priority, own, constraints, now, now) end
  queue_sets.add_waiting(queue, jid,
    constraints and turns.enter(queue, jid, priority, constraints, now, now)
      or queue_sets.compute_last(queue, priority, now))
  return 'waiting'
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

-- Move scheduled jobs that are due to the waiting ones, earliest first, at most `most`, besides
-- those that gather from now on.
function queue_sets.move_due(queue, now, most)
  local left = constants.MAX_BATCH
  while most > 0 do
    local due = redis.call('ZRANGE', keys.scheduled(queue), '-inf', now, 'BYSCORE', 'LIMIT', 0,
      math.min(most, left), 'WITHSCORES')
    most = 0
    for i = 1, #due, 2 do
      if queue_sets.move(queue, due[i], tonumber(due[i + 1]), now) == 'scheduled' then
        most = most + 1
      end
    end
    left = left - #due / 2
    call.cut_short = call.cut_short or left <= 0 and most > 0
    if left <= 0 then return end
  end
end

-- Move a job that is due, `at` some time. Return its state; nil if it doesn't exist.
function queue_sets.move(queue, jid, at, now)
  local job = redis.call('HMGET', keys.job(jid), 'jid', 'priority', 'x-constraints')
  redis.call('ZREM', keys.scheduled(queue), jid)
  if not job[1] then return nil end
  local priority, state = tonumber(job[2]) or 0, 'waiting'
  local held = job[3] and held_jobs.take_score(job[3], jid)
  local own = job[3] and bulks.read(job[3])
  local gathered = own and bulks.find_score(queue, jid, own)
  if own and not gathered and not held then
    state = bulks.gather(queue, jid, priority, own, job[3], at, now)
  else
    if not held then
      call.moved = call.moved or {}  -- when the jobs that this call moved were due
      call.moved[jid] = at
    end
    local former = held or gathered
    local turn = job[3] and (former and turns.resume(queue, jid, priority, job[3], now)
      or not former and turns.enter(queue, jid, priority, job[3], at, now))
    local score = turn or former or priority_score.compute(priority, now)
    if own and score ~= gathered then bulks.rejoin(queue, jid, job[3], score) end
    queue_sets.add_waiting(queue, jid, score)
  end
  record.set_fields(jid, 'state', state)
  return state
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
