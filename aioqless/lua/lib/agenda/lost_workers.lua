-- lost_workers: put the jobs of a worker that has died back into their queues.

-- Put back the next jobs of such a worker, at most `most`; return how many there were. This uses no
-- retry, but a job that was lost more often than it has retries, or than `max-lost`, fails: it may
-- be what kills the worker.
function lost_workers.put_back(worker, now, most)
  if not beats.is_noted(worker) then return 1 end
  local jids = redis.call('ZRANGE', keys.worker_jobs(worker), 0, most - 1)
  for _, jid in ipairs(jids) do
    local job = record.read(jid)
    redis.call('ZREM', keys.worker_jobs(worker), jid)
    if job and job.state == 'running' and job.worker == worker then
      local lost = failing.count_lost(job)
      if not failing.fail_if_lost(job, lost, lost > job.retries, now) then
        release.put_back(job, now)
      end
    end
  end
  if #jids == most then
    notes.store('worker gone', worker)
  else
    beats.note_released(worker)
  end
  return #jids + 1
end
