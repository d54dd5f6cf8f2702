-- skip: return a reserved job, behind the others; it is not offered to this person again.
--
-- @arg     jid      string
-- @arg     person   name
-- @arg     worker   string        the person's session, must hold the lock
-- @arg     now      time
-- @option  fence    string        must be that of the run
-- @flags   allow-oom
-- @role    people
-- @returns text                   the new state
-- @raises  NOJOB BADSTATE LOCKLOST

local job = record.require_held(jid, worker, fence)
history.append(jid, job, now, 'skipped', cjson.encode({worker = worker}))
if archive.is_on() then archive.append_run(job, now, 'skipped') end
reservations.remember_skipped(person, jid, now)
release.remove_from_worker(job, now)
local state = placement.put(jid, job.queue, job.priority, 0, now, false, job.constraints)
record.set_fields(jid, 'state', state, 'time', record.format_time(now))
return state
