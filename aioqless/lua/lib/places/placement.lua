-- placement: add a job to the set of its queue where it belongs, and move it when it is due.

-- Add to the waiting jobs, or to the scheduled ones until `due`; one of a bulk gathers then. Return
-- the state. `constraints`: those of the job, as JSON, if it has any.
function placement.add(queue, jid, priority, due, now, constraints)
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

-- Move scheduled jobs that are due to the waiting ones, earliest first, at most `most`, besides
-- those that gather from now on. `moved` gets when each was due, by jid, and as `has_more` whether
-- more are.
function placement.move_due(queue, now, most, moved)
  local left = constants.MAX_BATCH
  while most > 0 do
    local due = redis.call('ZRANGE', keys.scheduled(queue), '-inf', now, 'BYSCORE', 'LIMIT', 0,
      math.min(most, left), 'WITHSCORES')
    most = 0
    for i = 1, #due, 2 do
      if placement.move(queue, due[i], tonumber(due[i + 1]), moved, now) == 'scheduled' then
        most = most + 1
      end
    end
    left = left - #due / 2
    if left <= 0 then
      moved.has_more = most > 0
      return
    end
  end
end

-- Move a job that is due, `at` some time. Return its state; nil if it doesn't exist.
function placement.move(queue, jid, at, moved, now)
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
    if not held then moved[jid] = at end
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

-- Add a job to the set where it belongs: held by dependencies, scheduled, or waiting. Return the
-- state, which the caller writes. `constraints`: the job's, as JSON, if it has any.
function placement.put(jid, queue, priority, delay, now, may_depend, constraints)
  local due = delay > 0 and now + delay or nil
  if due and archive.is_on() then
    record.set_fields(jid, 'x-due', record.format_time(now) .. string.format(' %.6f', due))
  end
  if may_depend and dependency.is_blocked(jid) then
    queue_sets.add_depending(queue, jid, now)
    if due then record.set_fields(jid, 'scheduled', due) end
    return 'depends'
  end
  return placement.add(queue, jid, priority, due, now, constraints)
end
