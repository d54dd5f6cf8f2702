-- jobs: the jids of jobs in a state.
--
-- @arg     state    string        waiting running stalled scheduled depends recurring complete
-- @arg     now      time
-- @arg     queue    string?       not for complete
-- @arg     offset   count?
-- @arg     count    count?        at most 1,000; 25 unless given
-- @flags   no-writes
-- @returns texts                  running by soonest expiry, scheduled and recurring by due time,
--                                 complete newest first

return listing.list_state(state, queue, now, offset or 0,
  math.min(count or 25, constants.MAX_BATCH))
