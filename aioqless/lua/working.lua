-- working: summaries of workers and the jobs that they hold.
--
-- @arg     now      time
-- @arg     most     count         maximum number of jobs of each, at most 100
-- @rest    workers  string        at most 100 are read
-- @flags   no-writes
-- @returns json                   [{name, seen, jobs, stalled, doing: [as glances]}]; `seen` is 0
--                                 for an unknown worker

local found = {}
for i = 1, math.min(#workers, 100) do
  found[i] = summaries.worker(workers[i], now, math.min(most, 100))
end
return json.list(found)
