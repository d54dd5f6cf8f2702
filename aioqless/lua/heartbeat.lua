-- heartbeat: renew the lock of a running job.
--
-- @arg     jid      any_jid
-- @arg     worker   text          must hold the lock
-- @arg     now      time
-- @arg     data     data?         replaces the job's data if given
-- @option  fence    string        must be that of the run
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
local expires = locks.renew(jid, worker, fence, now, data)
if progress then
  events.publish({event = 'progress', jid = jid, progress = progress, message = message or ''})
  events.publish_tracked('progress', jid)
  record.set_fields(jid, 'x-progress', cjson.encode({
    share = progress, message = message or '', when = now, fence = fence,
  }))
end
return json.number(expires)
