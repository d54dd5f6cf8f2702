-- expiry: take jobs away from workers whose lock has expired.

-- Handle an expired lock: notify the holder and start the grace period, or take the job away. A
-- reservation that a person let expire uses no retry. Return the job's record if this call may pop
-- it; nil if its grace period began, its retries are used up, it lost its lock too often, or a
-- newer job makes another run needless.
function expiry.expire(queue, jid, now)
  local job = record.read(jid)
  if not job or job.state == 'complete' or job.state == 'failed' then
    redis.call('ZREM', keys.locks(queue), jid)
    return nil
  end
  if job.worker ~= '' then redis.call('ZREM', keys.worker_jobs(job.worker), jid) end
  if redis.call('HGET', keys.job(jid), 'x-reserved') == (job.fence or '') .. ' ' .. job.worker then
    history.append(jid, job, now, 'abandoned', cjson.encode({worker = job.worker}))
    events.publish_lock_lost(job.worker, jid)
    if archive.is_on() then archive.append_run(job, now, 'abandoned') end
    if job.constraints then admission.release(job, now) end
    return job
  end
  local grace = config.common('grace-period')
  if not job.grace or grace <= 0 then
    events.publish_tracked('stalled', jid)
    history.append(jid, job, now, 'timed-out')
    events.publish_lock_lost(job.worker, jid)
    stats.count(queue, now, 'retries', 1)
    if grace > 0 then
      record.set_fields(jid, 'grace', 1)
      redis.call('ZADD', keys.locks(queue), now + grace, jid)
      return nil
    end
  end
  record.delete_fields(jid, 'grace')
  if job.constraints then admission.release(job, now) end
  job.remaining = job.remaining - 1
  record.set_fields(jid, 'remaining', job.remaining)
  if failing.fail_if_lost(job, failing.count_lost(job), job.remaining < 0, now) then return nil end
  local newer = job.constraints and debounce.find_successor(job, now)
  if newer then
    queue_sets.remove(queue, jid)
    completion.supersede(job, newer, now)
    return nil
  end
  if archive.is_on() then archive.append_run(job, now, 'lost') end
  return job
end
