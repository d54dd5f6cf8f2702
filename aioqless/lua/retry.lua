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
record.clear(jid, 'grace')
place.leave(queue, jid)
if job.terms then limits.leave(job, now) end
redis.call('ZREM', keys.held(worker), jid)
if remaining >= 0 then
  stats.count(queue, now, 'x-retries', 1)
  if archive.is_on() then archive.interrupted(job, now, 'retried', group, message) end
  if group and message then record.set(jid, 'failure', failing.failure(group, message, worker, now)) end
  local state = putting.place(jid, queue, job.priority, delay or 0, now, false)
  record.set(jid, 'state', state, 'worker', '', 'expires', 0, 'remaining', remaining, 'time', record.time(now))
  return json.number(remaining)
end

record.set(jid, 'remaining', remaining)
local into = group or 'failed-retries-' .. queue
local why = group and message or 'Job exhausted retries in queue "' .. queue .. '"'
history.append(jid, job, now, 'failed', cjson.encode({group = into}))
events.tracked('failed', jid)
events.log({event = 'failed', jid = jid, worker = worker, group = into, message = why})
stats.count(queue, now, 'failures', 1)
stats.count(queue, now, 'failed', 1)
failing.store(job, into, why, worker, now)
cascade.upkeep(now)
return json.number(remaining)
