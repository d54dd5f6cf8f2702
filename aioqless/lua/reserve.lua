-- reserve: lock the next job of a queue for a person, for as long as is said; who has one already is answered with that.
--
-- @key     queue
-- @arg     person   name          what the person skipped is passed over, what was handed over to the person comes first
-- @arg     worker   name          the person's session, which has at most one job of a queue
-- @arg     limit    interval      seconds, at most a day, after which the job goes to whoever asks next
-- @arg     now      time
-- @option  again    count         1: what the person skipped is offered, too
-- @flags   allow-oom
-- @present reservations.view(answer[1], worker, answer[2], now)
-- @returns json                   {job: or null, skipped: how many the person skipped that wait, now}

reservations.check_limit(limit)
dependency.run_deferred(now)
local current = reservations.find_current(queue, worker, now)
local jid, skipped = current and current.jid or reservations.take_handed_over(queue, person, worker, limit, now), 0
if not jid then jid, skipped = reservations.take_next(queue, person, worker, limit, now, again == 1) end
stats.flush(now)
return {jid or '', skipped}
