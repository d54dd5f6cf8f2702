-- signal: send a value to a job, which waits for it now or later.
--
-- @arg     jid      any_jid
-- @arg     now      time
-- @arg     name     name
-- @arg     result   string        JSON
-- @option  replace  string        a former value that the job hasn't received, also of a failed job
-- @flags   allow-oom
-- @role    producer dashboard
-- @durable
-- @raises  NOJOB BADSTATE SIGNALED

local job = record.require(jid)
if job.state == 'complete' or job.state == 'failed' and not replace then
  errors.bad_state(job, 'the job has ended')
end
step_entries.signal(job, name, result, replace, now)
waits.wake(job, 'wait:' .. name, now)
