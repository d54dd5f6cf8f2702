-- heartbeat: renew the lock of a running job.
--
-- @arg     jid      any_jid
-- @arg     worker   text          must hold the lock
-- @arg     now      time
-- @arg     data     data?         replaces the job's data if given
-- @option  fence    string        must be that of the run
-- @option  data_keys object       what its constraints take from the data (key_changes.lua)
-- @option  progress fraction      how much is done, from 0 to 1; stored and published
-- @option  message  text          with progress only: what is being done
-- @flags   allow-oom
-- @role    worker people
-- @returns number                 when the lock expires
-- @raises  NOJOB BADSTATE LOCKLOST

if message and not progress then
  errors.bad_argument('message', message, 'cannot be used without progress')
end
if message and #message > 4000 then
  errors.bad_argument('message', message, 'is longer than 4000 bytes')
end
local job = data_keys and record.require_held(jid, worker, fence)
local constraints = job and key_changes.merge(job, data_keys)
local expires = locks.renew(jid, worker, fence, now, data)
if constraints then key_changes.apply_while_running(job, constraints, expires, now) end
if progress then
  events.publish({event = 'progress', jid = jid, progress = progress, message = message or ''})
  events.publish_tracked('progress', jid)
  record.set_fields(jid, 'x-progress', cjson.encode({
    share = progress, message = message or '', when = now, fence = fence,
  }))
end
return json.number(expires)
