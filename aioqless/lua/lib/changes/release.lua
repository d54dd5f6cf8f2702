-- release: return an unfinished job to its queue.

-- Put a job back at its former place in its queue, without using a retry, or delay it. Return its
-- new state.
function release.put_back(job, now, delay)
  local jid = job.jid
  history.append(jid, job, now, 'released', cjson.encode({worker = job.worker}))
  if archive.is_on() then archive.append_run(job, now, 'released') end
  release.remove_from_worker(job, now)
  if delay and delay > 0 then
    local state = placement.put(jid, job.queue, job.priority, delay, now, false, job.constraints)
    record.set_fields(jid, 'state', state, 'time', record.format_time(now))
    return state
  end
  local since = job.put or now
  record.set_fields(jid, 'state', 'waiting', 'time', record.format_time(since))
  local score = job.constraints
    and turns.resume(job.queue, jid, job.priority, job.constraints, now)
    or priority_score.compute(job.priority, since)
  if job.constraints then bulks.rejoin(job.queue, jid, job.constraints, score) end
  queue_sets.add_waiting(job.queue, jid, score)
  return 'waiting'
end

-- Park a running job until the first of these waits is over; if one is already, it is to run again
-- at once. Return its state.
function release.park(job, fields, now)
  local due = waits.find_due(job, fields, now)
  record.delete_fields(job.jid, 'x-expiry')
  local state = release.put_back(job, now, due - now)
  if state == 'scheduled' then waits.store(job, fields, due) end
  return state
end

-- Remove a job from its worker and its queue; the caller puts it somewhere.
function release.remove_from_worker(job, now)
  record.delete_fields(job.jid, 'grace', 'x-declined')
  queue_sets.remove(job.queue, job.jid)
  if job.constraints then admission.release(job, now) end
  redis.call('ZREM', keys.worker_jobs(job.worker), job.jid)
  record.set_fields(job.jid, 'worker', '', 'expires', 0)
end

-- Since when workers without a handler have declined the job; nil if none has since its last run.
function release.read_declined_since(job)
  return tonumber(redis.call('HGET', keys.job(job.jid), 'x-declined'))
end

-- Remove the traces of the pop that began this run: from the history, the statistics and the rates.
-- A peer's pop keeps no `x-put`, and counts.
function release.undo_pop(job, now)
  history.remove_last(job.jid, 'popped')
  if not (job.put and job.time) then return end
  stats.remove('wait', job.queue, job.time, job.time - job.put)
  local freed = rates.remove_start('q:' .. job.queue, job.jid, job.time)
  if job.constraints then limits.undo_start(job) end
  if freed > 0 then events.publish_ready(job.queue) end
end

-- Schedule a declined job; its wait continues. The history keeps the first time only.
function release.decline(job, since, now, delay)
  local first = not release.read_declined_since(job)
  local expiry = tonumber(redis.call('HGET', keys.job(job.jid), 'x-expiry'))
  if expiry then delay = math.min(delay, math.max((expiry - now) / 2, 0.1)) end
  if first then
    history.append(job.jid, job, now, 'declined', cjson.encode({worker = job.worker}))
  end
  release.remove_from_worker(job, now)
  local state = placement.add(job.queue, job.jid, job.priority, now + delay, now,
    job.constraints)
  record.set_fields(job.jid, 'state', state, 'time', record.format_time(job.put or now),
    'x-declined', json.number(since))
  return state
end
