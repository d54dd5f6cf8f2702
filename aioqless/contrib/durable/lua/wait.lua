-- wait: store that a run waits, and return how the wait has ended, or how long it lasts.
--
-- @arg     jid      any_jid
-- @arg     worker   text          must hold the lock
-- @arg     now      time
-- @arg     wait_kind string       `wait`: for a signal; `sleep`: for the time alone
-- @arg     name     name
-- @arg     timeout  seconds?      from now on, if no run has stored the wait before
-- @option  fence    string        must be that of the run
-- @option  accept   count         number of the signal that the run has read: it is received
-- @flags   allow-oom
-- @role    worker
-- @durable
-- @returns texts                  how it ended (received, signal, timeout, slept) and the entry; or
--                                 its kind, and the seconds left; none without a timeout
-- @raises  NOJOB BADSTATE LOCKLOST

if wait_kind ~= 'wait' and wait_kind ~= 'sleep' then
  errors.bad_argument('wait_kind', wait_kind, 'must be wait or sleep')
end
local job = record.require_held(jid, worker, fence)
if redis.call('HEXISTS', keys.job(jid), 'x-steps') == 0 then steps.begin(jid, now) end
if accept then step_entries.receive(job, name, accept, now) end
return step_entries.wait(job, wait_kind, name, timeout, now)
