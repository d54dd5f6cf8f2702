-- jobs: the jids that are in a state.
--
-- @arg     state    string        waiting running stalled scheduled depends recurring complete
-- @arg     now      time
-- @arg     queue    string?       not for complete
-- @arg     offset   count?
-- @arg     count    count?        default 25; at most 1,000
-- @flags   no-writes
-- @returns list                   running by soonest expiry, scheduled and recurring by when they are due, complete newest first

return listing.list_state(state, queue, now, offset or 0, math.min(count or 25, 1000))
