-- retry: run a job again, now or later; it costs one of its retries, and without any left the job fails.
--
-- @arg     jid      any_jid
-- @arg     queue    text          where the job runs
-- @arg     worker   text          must hold the lock
-- @arg     now      time
-- @arg     delay    seconds?
-- @option  group    name          why; kept with the job, and the group it fails in when it does
-- @option  message  text
-- @option  fence    string        must be that of the run
-- @flags   allow-oom
-- @returns number                 the retries that remain; negative: it failed
-- @raises  NOJOB BADSTATE LOCKLOST

local job = record.held(jid, worker, fence)
if job.queue ~= queue then refusal.state(job, 'the job runs in another queue') end
local remaining = job.remaining - 1
if remaining < 0 then
  record.set(jid, 'remaining', remaining)
  failing.exhaust(job, group, message, worker, now)
  cascade.upkeep(now)
  return json.number(remaining)
end
releasing.let_go(job, now)
stats.count(queue, now, 'x-retries', 1)
if archive.is_on() then archive.interrupted(job, now, 'retried', group, message) end
if group and message then record.set(jid, 'failure', failing.failure(group, message, worker, now)) end
local state = putting.place(jid, queue, job.priority, delay or 0, now, false)
record.set(jid, 'state', state, 'remaining', remaining, 'time', record.time(now))
return json.number(remaining)
