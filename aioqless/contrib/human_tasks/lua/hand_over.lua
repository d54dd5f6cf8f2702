-- hand_over: pass a reservation to another person, whose next `reserve` returns it.
--
-- @arg     jid      string
-- @arg     worker   string        must hold the lock
-- @arg     to       name          the other person
-- @arg     limit    interval      seconds, at most a day, after which anyone may reserve the job
-- @arg     now      time
-- @option  fence    string        must be that of the run
-- @flags   allow-oom
-- @role    people
-- @returns number                 when the offer expires
-- @raises  NOJOB BADSTATE LOCKLOST

reservations.check_limit(limit)
if to == worker then errors.bad_argument('to', to, 'has the reservation already') end
local job = record.require_held(jid, worker, fence)
history.append(jid, job, now, 'handed-over', cjson.encode({worker = worker, to = to}))
if archive.is_on() then archive.append_run(job, now, 'handed-over') end
reservations.transfer(job, to, limit, now)
return json.number(now + limit)
