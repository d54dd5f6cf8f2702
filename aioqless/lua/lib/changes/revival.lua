-- revival: let a failed job run again.

-- A failed job is to run again, and none is newer. Complete older ones instead, unless they run;
-- return whether it is the follow-up of one that does.
function revival.replace_older(job, now)
  local own = job_constraints.read(job.constraints)
  local last = own.debounce and debounce.find_last(own.unique, now)
  while last do
    local other = record.read(last)
    if not job_constraints.read(other.constraints).debounce then return false end
    if other.state == 'running' then
      record.set_fields(last, 'x-follow-up', job.jid)
      dependency.link(job.jid, {last})
      return true
    end
    queue_sets.remove(other.queue, last)
    admission.release(other, now)
    dependency.unlink_all(last)
    completion.supersede(other, job.jid, now)
    last = debounce.find_last(own.unique, now)
  end
  return false
end

-- Put a failed job that has left its group into a queue again, or end it if a newer one has its
-- key. The caller registers the queue.
function revival.put_back(job, queue, now)
  if archive.is_on() then archive_backfill.append(job) end
  local newer = job.constraints and debounce.find_successor(job, now)
  if newer then
    policies.note_retry(job.jid)
    return completion.supersede(job, newer, now)
  end
  local is_held = job.constraints and revival.replace_older(job, now)
  history.append(job.jid, job, now, 'put', cjson.encode({q = queue}))
  record.delete_fields(job.jid, 'x-lost', 'x-expiry')
  policies.note_retry(job.jid)
  local state = placement.put(job.jid, queue, job.priority, 0, now, is_held, job.constraints)
  record.set_fields(job.jid, 'state', state, 'worker', '', 'expires', 0, 'queue', queue,
    'remaining', job.retries, 'time', record.format_time(now))
  if job.constraints then
    local own = job_constraints.read(job.constraints)
    stored_constraints.apply(job.jid, nil, own, job.constraints, now)
    if own.set then members.move(own.set, job.jid, 'open', now) end
  end
end
