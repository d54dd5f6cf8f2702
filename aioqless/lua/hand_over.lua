-- hand_over: a reservation goes to another person, who gets it with the next `reserve`; if that doesn't come in time, whoever asks next.
--
-- @arg     jid      string
-- @arg     worker   string        must hold the lock
-- @arg     to       name          the other person
-- @arg     limit    interval      seconds that it waits for the other, at most a day
-- @arg     now      time
-- @option  fence    string        must be that of the run
-- @flags   allow-oom
-- @returns number                 until when it waits
-- @raises  NOJOB BADSTATE LOCKLOST

reservations.check_limit(limit)
if to == worker then errors.bad_argument('to', to, 'has it already') end
local job = record.require_held(jid, worker, fence)
history.append(jid, job, now, 'handed-over', cjson.encode({worker = worker, to = to}))
if archive.is_on() then archive.append_run(job, now, 'handed-over') end
reservations.transfer(job, to, limit, now)
return json.number(now + limit)
