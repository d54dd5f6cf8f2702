-- release: the holder hands a running job back, at its former place in the queue and at no cost of a retry.
--
-- @arg     jid      string
-- @arg     worker   string        must hold the lock
-- @arg     now      time
-- @arg     delay    seconds?      not before so many seconds from now
-- @option  fence    string        must be that of the run
-- @flags   allow-oom
-- @returns text                   the new state
-- @raises  NOJOB BADSTATE LOCKLOST

local job = record.held(jid, worker, fence)
history.append(jid, job, now, 'released', cjson.encode({worker = worker}))
record.clear(jid, 'grace')
place.leave(job.queue, jid)
redis.call('ZREM', keys.held(worker), jid)
record.set(jid, 'worker', '', 'expires', 0)
if delay and delay > 0 then
  local state = putting.place(jid, job.queue, job.priority, delay, now, false)
  record.set(jid, 'state', state, 'time', record.time(now))
  return state
end
local since = job.put or now
record.set(jid, 'state', 'waiting', 'time', record.time(since))
place.wait(job.queue, jid, precedence.score(job.priority, since))
return 'waiting'
