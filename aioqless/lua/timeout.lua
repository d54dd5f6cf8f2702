-- timeout: an operator takes running jobs from their workers; they are next in line before all others.
--
-- @arg     now      time
-- @rest    jids     string
-- @flags   allow-oom
-- @returns nothing
-- @raises  NOJOB BADSTATE

local jobs = {}
for i, jid in ipairs(jids) do
  jobs[i] = record.existing(jid)
  if jobs[i].state ~= 'running' then refusal.state(jobs[i], 'the job is not running') end
end
for _, job in ipairs(jobs) do
  history.append(job.jid, job, now, 'timed-out')
  place.leave(job.queue, job.jid)
  if job.terms then limits.leave(job, now) end
  if job.worker ~= '' then redis.call('ZREM', keys.held(job.worker), job.jid) end
  place.wait(job.queue, job.jid, '+inf')
  record.clear(job.jid, 'grace')
  if archive.is_on() then archive.interrupted(job, now, 'timed-out') end
  record.set(job.jid, 'state', 'stalled', 'expires', 0)
  events.lock_lost(job.worker, job.jid)
end
