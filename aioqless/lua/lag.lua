-- lag: for how long the next job of each queue could have been running by now.
--
-- @keys    queues
-- @arg     now      time
-- @flags   no-writes
-- @returns json                   seconds for each queue; 0 where nothing waits

local lags = {}
for i, queue in ipairs(queues) do lags[i] = json.number(listing.read_lag(queue, now)) end
return json.list(lags)
