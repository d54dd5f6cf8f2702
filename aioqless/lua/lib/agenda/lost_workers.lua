-- lost_workers: return the jobs of a worker that has died to their queues.

-- Release the next jobs of a dead worker, at most `most`; return how many there were. This uses no
-- retry, but a job that was lost more often than it has retries, or than `max-lost`, fails: it may
-- be what kills the worker.
function lost_workers.release(worker, now, most)
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
  return #jids
end
