-- release: return a running job unfinished to its former place in the queue. It uses no retry.
--
-- @arg     jid      any_jid
-- @arg     worker   text          must hold the lock
-- @arg     now      time
-- @arg     delay    seconds?      until it may run again
-- @option  data     data          replaces the job's data
-- @option  data_keys object       what its constraints take from it (key_changes.lua)
-- @option  fence    string        must be that of the run
-- @option  paused_key name        pauses this key of a limit for `delay`; a job with this limit is
--                                 back at its place, and starts when the pause is over
-- @option  waiting  jids          park it until one of these waits of its steps is over
-- @flags   allow-oom
-- @role    worker people
-- @returns text                   the new state
-- @raises  NOJOB BADSTATE LOCKLOST

local job = record.require_held(jid, worker, fence)
if data_keys then key_changes.apply(job, key_changes.merge(job, data_keys), now) end
if data then record.set_fields(jid, 'data', data) end
if waiting then return release.park(job, waiting, now) end
if paused_key then
  limits.pause(paused_key, delay or 0, now)
  local own = job_constraints.read(job.constraints)
  if job_constraints.find_limit(own, paused_key) then delay = 0 end
end
return release.put_back(job, now, delay)
