-- reserve: lock the next job of a queue for a person, or return the one that is reserved already.
--
-- @key     queue
-- @arg     person   name          skips the jobs that this person skipped; prefers one handed over
-- @arg     worker   name          the person's session, which has at most one job of a queue
-- @arg     limit    interval      seconds, at most a day, after which anyone may reserve the job
-- @arg     now      time
-- @option  again    count         1: offer skipped jobs, too
-- @flags   allow-oom
-- @role    people
-- @present reservations.view(answer[1], worker, answer[2], now)
-- @returns json                   {job: or null, skipped: number of waiting jobs skipped before,
--                                 now}

reservations.check_limit(limit)
local current = reservations.find_current(queue, worker, now)
local jid, skipped = current and current.jid
  or reservations.take_handed_over(queue, person, worker, limit, now), 0
if not jid then
  jid, skipped = reservations.take_next(queue, person, worker, limit, now, again == 1)
end
if not jid then notes.find_stored(now) end
stats.flush()
return {jid or '', skipped}
