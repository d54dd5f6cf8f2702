-- failing: fail a job, whatever its state.

-- Count a lost lock; from then on the job runs alone. Return how many it has lost since it was put
-- into its queue.
function failing.count_lost(job)
  local lost = (tonumber(redis.call('HGET', keys.job(job.jid), 'x-lost')) or 0) + 1
  record.set_fields(job.jid, 'x-lost', lost)
  job.constraints = job.constraints and bulks.separate(job)
  return lost
end

-- Fail a job that has lost more than `max-lost` locks, or has no retries left. Return whether it
-- has.
function failing.fail_if_lost(job, lost, exhausted, now)
  local most = config.common('max-lost')
  if most > 0 and lost > most then
    local message = string.format('Lost its lock %d times in queue "%s", lately by %s', lost,
      job.queue, history.list_holders(job, 3))
    failing.fail(job, job.queue .. '-lost-locks', message, job.worker, now, true)
  elseif exhausted then
    failing.fail_exhausted(job, nil, nil, job.worker, now)
  else
    return false
  end
  return true
end

-- Fail a job, whatever its state. `exhausted`: it ran out of retries or locks; then live clients
-- publish the two events in reverse order, and name no worker in the history.
function failing.fail(job, group, message, worker, now, exhausted)
  if exhausted then events.publish_tracked('failed', job.jid) end
  events.publish({
    event = 'failed', jid = job.jid, worker = worker, group = group, message = message,
  })
  if not exhausted then events.publish_tracked('failed', job.jid) end
  history.append(job.jid, job, now, 'failed', cjson.encode({
    worker = not exhausted and worker or nil, group = group,
  }))
  if job.queue ~= '' then
    stats.count(job.queue, now, 'failures', 1)
    stats.count(job.queue, now, 'failed', 1)
  end
  queue_sets.remove(job.queue, job.jid)
  if job.constraints then
    admission.release(job, now)
    local own = job_constraints.read(job.constraints)
    if own.debounce then debounce.hand_over(job.jid, own.unique, now) end
  end
  if job.worker ~= '' then redis.call('ZREM', keys.worker_jobs(job.worker), job.jid) end
  record.delete_fields(job.jid, 'grace', 'scheduled', 'x-declined')
  failing.store(job, group, message, worker, now)
end

-- Fail a job that has no retries left, in `group` for `message` if its worker gave them.
function failing.fail_exhausted(job, group, message, worker, now)
  local why = group and message or 'Job exhausted retries in queue "' .. job.queue .. '"'
  failing.fail(job, group or constants.EXHAUSTED_GROUP .. job.queue, why, worker, now, true)
end

-- Write the failure, and file the job under its group.
function failing.store(job, group, message, worker, now)
  if archive.is_on() then
    archive.append(job, 'fail', now, {state = 'failed', group = group, message = message})
    record.set_fields(job.jid, 'x-archived', job.time_text or '')
  end
  record.set_fields(job.jid, 'state', 'failed', 'worker', '', 'expires', '',
    'failure', failures.encode(group, message, worker, now))
  redis.call('SADD', keys.failures(), group)
  redis.call('LPUSH', keys.group(group), job.jid)
  retention.schedule_failed(job, now)
  local f = redis.call('HMGET', keys.job(job.jid), 'x-cascade', 'x-on-failure', 'klass',
    'x-parent')
  failure_jobs.note_failure({
    jid = job.jid, queue = job.queue, time = job.time_text, group = group, message = message,
  }, f)
  if f[4] then
    notes.store('child ended', {
      jid = job.jid, parent = f[4],
      outcome = call_outcomes.encode_failure(job.jid, group, message),
    })
  end
  local set = job.constraints and job_constraints.read_set(job.constraints)
  if set then members.move(set, job.jid, 'failed', now) end
end
