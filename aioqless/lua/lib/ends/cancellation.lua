-- cancellation: delete jobs, whatever their state.

local MOST_DEPENDENTS = 10000

-- Return the jids that were canceled. `actor`: who cancels them, if it is known.
function cancellation.cancel(jids, actor)
  cancellation.check(jids)
  local canceled = {}
  for _, jid in ipairs(jids) do
    local job = record.read(jid)
    if job and job.state ~= 'complete' then
      cancellation.delete(job, false, nil, actor)
      canceled[#canceled + 1] = jid
    end
  end
  return canceled
end

-- Refuse if a dependent of one of the jobs is not among them.
function cancellation.check(jids)
  local named, left = {}, MOST_DEPENDENTS
  for _, jid in ipairs(jids) do named[jid] = true end
  for _, jid in ipairs(jids) do
    local number = redis.call('SCARD', keys.dependents(jid))
    left = left - number
    if left < 0 then
      errors.bad_argument('jids', jid,
        'too many jobs depend on these; cancel the dependents first, in smaller calls')
    end
    local dependents = number <= #jids and redis.call('SMEMBERS', keys.dependents(jid))
      or redis.call('SRANDMEMBER', keys.dependents(jid), #jids + 1)
    for _, dependent in ipairs(dependents) do
      if not named[dependent] and redis.call('EXISTS', keys.job(dependent)) == 1
        and redis.call('HGET', keys.job(jid), 'x-follow-up') ~= dependent then
        errors.raise('HELD', 'a job depends on it and is not among the jobs to cancel', {
          jid = jid, dependent = dependent,
        })
      end
    end
  end
end

-- Delete a job. One that `expired` was archived when it failed.
function cancellation.delete(job, expired, now, actor)
  local jid = job.jid
  if archive.is_on() then
    if job.state == 'failed' then archive_backfill.append(job) end
    if not expired then
      archive.append(job, 'cancel', now or clock.now(), {state = 'cancelled', actor = actor})
    end
  end
  local event = {event = 'canceled', jid = jid, queue = job.queue, worker = job.worker}
  events.publish(event)
  if job.worker ~= '' then
    redis.call('ZREM', keys.worker_jobs(job.worker), jid)
    events.publish_to_worker(job.worker, event)
  end
  queue_sets.remove(job.queue, jid)
  if job.constraints then
    now = now or clock.now()
    stored_constraints.release(job, now, true)
    admission.release(job, now)
  end
  dependency.unlink_all(jid)
  local f = redis.call('HMGET', keys.job(jid), 'x-steps', 'x-parent')
  if f[1] then
    steps.note_orphans(jid)
    steps.delete(jid)
  end
  if f[2] then
    notes.store('child ended', {
      jid = jid, parent = f[2],
      outcome = call_outcomes.encode_failure(jid, 'canceled', 'the job was canceled'),
    })
  end
  if job.state == 'failed' then failures.leave_group(job) end
  tagging.detach(jid, json.parse_texts(job.tags))
  events.publish_tracked('canceled', jid)
  redis.call('UNLINK', keys.job(jid), keys.history(jid), keys.result(jid), keys.dependents(jid),
    keys.output(jid))
  local set = not expired and job.constraints and job_constraints.read_set(job.constraints)
  if set then members.move(set, jid, 'canceled', now or clock.now()) end
end
