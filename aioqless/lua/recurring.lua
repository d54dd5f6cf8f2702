-- recurring: templates, a page at a time.
--
-- @arg     queue    string?       those whose turn is in this queue; empty: those of no queue's turns, with a cron expression or paused
-- @arg     offset   count?
-- @arg     count    count?        default 25; at most 1,000
-- @flags   no-writes
-- @returns json                   a list of what `recur get` shows, by when they are due; the paused last

return recurring_jobs.list_page(queue, offset or 0, math.min(count or 25, 1000))
