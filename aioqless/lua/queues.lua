-- queues: how many jobs each queue has in each state, and what today came to so far.
--
-- @arg     now      time
-- @arg     queue    string?       this one alone
-- @arg     offset   count?
-- @arg     count    count?        default and at most 1,000
-- @arg     totals   string?       `today`: with popped, completed, failures, retries, and their parts lost_locks and explicit_retries
-- @flags   no-writes
-- @returns json                   {name, waiting, running, stalled, scheduled, depends, recurring, paused}, or a list by when each was first seen

if totals and totals ~= 'today' then errors.bad_argument('totals', totals, 'must be today, or left out') end
local day = totals and stats.start_of_day(now)
if queue then return listing.count_states(queue, now, redis.call('SISMEMBER', keys.paused(), queue) == 1, day) end
count = math.min(count or 1000, 1000)
local names = count > 0 and redis.call('ZRANGE', keys.queues(), offset or 0, (offset or 0) + count - 1) or {}
local paused = names[1] and redis.call('SMISMEMBER', keys.paused(), unpack(names))
for i, name in ipairs(names) do names[i] = listing.count_states(name, now, paused[i] == 1, day) end
return json.list(names)
