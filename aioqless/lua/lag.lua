-- lag: for how long the next job of each queue has been ready to run.
--
-- @keys    queues
-- @arg     now      time
-- @flags   no-writes
-- @role    producer archiver
-- @returns json                   seconds for each queue; 0 for a queue without waiting jobs

local lags = {}
for i, queue in ipairs(queues) do
  lags[i] = json.number(listing.find_lag(now, listing.read_next(queue)))
end
return json.list(lags)
