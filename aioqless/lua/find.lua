-- find: search jobs by a filter, a bounded portion per call, in an order that stays.
--
-- A job that stays where it is during the whole search is found once. One that moves may be missed,
-- or found again.
--
-- @arg     conditions  string     a JSON list of what lib/search/job_filter.lua describes
-- @arg     now      time
-- @arg     cursor   string?       from the previous call; empty or 0: start
-- @arg     stop     string?       a cursor of the same filter, at which to end
-- @arg     count    count?        maximum number of jobs to find, at most 1,000; 100 unless given
-- @flags   no-writes
-- @returns json                   {cursor, searched, total, unsearched, found: [jid]}: the cursor
--                                 is "0" at the end, `total` counts the jobs to search and is 0
--                                 with a cursor, `unsearched` those whose data is encrypted or too
--                                 long

return job_search.run({
  conditions = job_filter.parse(conditions), now = now,
  most = math.max(1, math.min(count or 100, constants.MAX_BATCH)),
},
  cursor, stop)
