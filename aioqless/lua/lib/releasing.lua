-- releasing: a run is given up for somebody else to begin anew.

-- The job goes back to its former place in its queue, at no cost of a retry, or is delayed.  Returns its new state.
function releasing.release(job, now, delay)
  local jid = job.jid
  history.append(jid, job, now, 'released', cjson.encode({worker = job.worker}))
  if archive.is_on() then archive.interrupted(job, now, 'released') end
  releasing.let_go(job, now)
  if delay and delay > 0 then
    local state = putting.place(jid, job.queue, job.priority, delay, now, false)
    record.set(jid, 'state', state, 'time', record.time(now))
    return state
  end
  local since = job.put or now
  record.set(jid, 'state', 'waiting', 'time', record.time(since))
  place.wait(job.queue, jid, precedence.score(job.priority, since))
  return 'waiting'
end

-- Nobody runs it any more; where it goes is the caller's part.
function releasing.let_go(job, now)
  record.clear(job.jid, 'grace')
  place.leave(job.queue, job.jid)
  if job.terms then limits.leave(job, now) end
  redis.call('ZREM', keys.held(job.worker), job.jid)
  record.set(job.jid, 'worker', '', 'expires', 0)
end

-- Release the next jobs that a dead worker holds, at most `most`; returns how many.  This costs no retry, but a job that was lost more
-- often than it has retries, or than `max-lost`, fails: it may be what kills the worker.
function releasing.release_held(worker, now, most)
  local jids = redis.call('ZRANGE', keys.held(worker), 0, most - 1)
  for _, jid in ipairs(jids) do
    local job = record.read(jid)
    redis.call('ZREM', keys.held(worker), jid)
    if job and job.state == 'running' and job.worker == worker then
      local lost = locks.count_lost(job)
      if not locks.give_up_lost(job, lost, lost > job.retries, now) then releasing.release(job, now) end
    end
  end
  return #jids
end
