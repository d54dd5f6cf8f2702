-- queues: how many jobs each queue has in each state.
--
-- @arg     now      time
-- @arg     queue    string?       this one alone
-- @arg     offset   count?
-- @arg     count    count?        default and at most 1,000
-- @flags   no-writes
-- @returns json                   {name, waiting, running, stalled, scheduled, depends, recurring, paused}, or a list by when each was first seen

if queue then return listing.counts(queue, now) end
count = math.min(count or 1000, 1000)
local names = count > 0 and redis.call('ZRANGE', keys.queues(), offset or 0, (offset or 0) + count - 1) or {}
for i, name in ipairs(names) do names[i] = listing.counts(name, now) end
return json.list(names)
