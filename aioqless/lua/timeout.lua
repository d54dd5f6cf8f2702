-- timeout: take running jobs away from their workers; the next pop returns them first.
--
-- @arg     now      time
-- @rest    jids     string
-- @flags   allow-oom
-- @role    worker dashboard
-- @durable
-- @returns nothing
-- @raises  NOJOB BADSTATE

local jobs = {}
for i, jid in ipairs(jids) do
  jobs[i] = record.require(jid)
  if jobs[i].state ~= 'running' then errors.bad_state(jobs[i], 'the job is not running') end
end
for _, job in ipairs(jobs) do
  history.append(job.jid, job, now, 'timed-out')
  queue_sets.remove(job.queue, job.jid)
  if job.constraints then
    admission.release(job, now)
    bulks.separate(job)
  end
  if job.worker ~= '' then redis.call('ZREM', keys.worker_jobs(job.worker), job.jid) end
  queue_sets.add_waiting(job.queue, job.jid, '+inf')
  record.delete_fields(job.jid, 'grace')
  if archive.is_on() then archive.append_run(job, now, 'timed-out') end
  record.set_fields(job.jid, 'state', 'stalled', 'expires', 0)
  events.publish_lock_lost(job.worker, job.jid)
end
