-- admission: start a job only if all of its limits admit it, and let the next ones of its keys
-- start when it stops running or waiting.

-- Whether the next job may start; otherwise it is held back, so that it blocks no others. `turn`:
-- the score of the job that takes it along, if one does.
function admission.may_start(queue, job, score, now, turn)
  if not job.constraints then return true end
  local own = job_constraints.read(job.constraints)
  if own.limits and not admission.admit(job, own, queue, score, now) then
    redis.call('ZREM', keys.locks(queue), job.jid)
    if own.bulk then redis.call('ZREM', keys.bulk(queue, own.bulk), job.jid) end
    return false
  end
  if own.fair then turns.start(queue, job, own, turn or score) end
  return true
end

-- Whether the next job may start; if so it counts from now on, otherwise it is held back.
function admission.admit(job, own, queue, score, now)
  local contended = limits.is_contended(own)
  for _, limit in ipairs(own.limits) do
    local due = limits.find_due(limit, job.jid, score, contended, now)
    if due then
      held_jobs.hold(job, own, limit, queue, score, due, now)
      if contended then held_jobs.wake_next(own, now, limit) end
      return false
    end
  end
  for _, limit in ipairs(own.limits) do
    if limit.limit then
      redis.call('ZADD', keys.limit_running(limit.key),
        now + config.heartbeat(queue) + config.common('grace-period'), job.jid)
    end
    if limit.rate then
      rates.record_start('k:' .. limit.key, limit.rate, job.jid, now, limit.cost)
    end
    if contended then redis.call('ZREM', keys.overdue(limit.key), job.jid) end
  end
  if contended then held_jobs.wake_next(own, now) end
  return true
end

-- A job stops running or waiting: wake the next ones of its keys. One that hasn't run gives its
-- turn back.
function admission.release(job, now)
  local own = job_constraints.read(job.constraints)
  local running = job.state == 'running'
  if own.fair and not running then turns.give_back(job, own) end
  if own.bulk and not running then bulks.leave(job, own) end
  local left = 0
  for _, limit in ipairs(own.limits or {}) do
    if limit.limit then left = left + redis.call('ZREM', keys.limit_running(limit.key), job.jid) end
    if not running then
      left = left + redis.call('ZREM', keys.held_back(limit.key), job.jid)
        + redis.call('ZREM', keys.overdue(limit.key), job.jid)
    end
  end
  if left > 0 then held_jobs.wake_next(own, now) end
end

-- Correct what the start of this run costs. Return 1 if it still counts.
function admission.charge(job, key, used, now)
  local limit = job_constraints.find_limit(job_constraints.read(job.constraints), key)
  if not (limit and limit.cost) then
    errors.bad_state(job, 'the job has no limit with a cost of this key')
  end
  if not rates.change_cost('k:' .. key, job.jid, job.time, used) then return 0 end
  held_jobs.wake_first(key, now)
  return 1
end
