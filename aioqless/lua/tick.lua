-- tick: put instances of recurring jobs with a cron expression, as the caller computed them.
--
-- It also finds notes that are due (lib/facts/notes.lua), and returns what is due next.
--
-- @arg     now      time
-- @arg     offset   count?        number of due jobs to leave out, whose times the caller can't
--                                 compute
-- @batch   jid:string tick:seconds at:seconds next:seconds   the tick, the instance's, the next;
--                                 one that isn't due moves to an earlier `next`, without instance
-- @option  generation text        as returned by `declare begin`
-- @option  page     count         also find recurring jobs that stand still since the clock was
--                                 ahead, a page of them; 0: the first page
-- @role    worker dashboard
-- @present cron_jobs.list_due(now, offset or 0, answer, generation)
-- @returns json                   {now, made: [the instances' jids; '' where another caller was
--                                 first], next, due: [{jid, tick, cron, timezone, backlog}]};
--                                 backlog null: missed runs are coalesced into one; with a
--                                 generation also `lost`: whether Redis may have lost its
--                                 declarations; with a page also `later`: those to be computed
--                                 again, as in `due`, `moved`: those with an interval that were
--                                 moved, {jid, former, next}, and the next `page` or null

notes.find_stored(now)
local review = page and recurring_review.run(page, now)
local made = cron_jobs.tick(each, now)
cron_jobs.remove_orphans(now, offset or 0)
return {made = made, review = review}
