-- working: what several workers do now.
--
-- @arg     now      time
-- @arg     most     count         so many jobs of each; at most 100
-- @rest    workers  string        at most 100 are looked at
-- @flags   no-writes
-- @returns json                   [{name, seen, jobs, stalled, doing: [as glances]}]; `seen` is 0 for one that isn't known

local found = {}
for i = 1, math.min(#workers, 100) do found[i] = summaries.worker(workers[i], now, math.min(most, 100)) end
return json.list(found)
