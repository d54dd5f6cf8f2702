-- recurring: recurring jobs, a page at a time.
--
-- @arg     queue    string?       those with an interval in this queue; empty: those with a cron
--                                 expression, and paused ones
-- @arg     offset   count?
-- @arg     count    count?        at most 1,000; 25 unless given
-- @flags   no-writes
-- @returns json                   a list of what `recur get` returns, by due time; paused and
--                                 ended ones last

return recurring_jobs.list_page(queue, offset or 0, math.min(count or 25, constants.MAX_BATCH))
