-- queues: the number of jobs of each queue by state, and optionally today's counters.
--
-- @arg     now      time
-- @arg     queue    string?       this one alone
-- @arg     offset   count?
-- @arg     count    count?        at most 1,000, which is also the default
-- @arg     totals   string?       `today`: add popped, completed, failures, retries, lost_locks and
--                                 explicit_retries
-- @flags   no-writes
-- @role    worker archiver
-- @returns json                   {name, waiting, running, stalled, scheduled, depends, recurring,
--                                 paused}, or a list of them by when each queue was first seen

if totals and totals ~= 'today' then
  errors.bad_argument('totals', totals, 'must be today, or omitted')
end
local day = totals and clock.start_of_day(now)
if queue then
  return listing.count_states(queue, now, redis.call('SISMEMBER', keys.paused(), queue) == 1, day)
end
count = math.min(count or constants.MAX_BATCH, constants.MAX_BATCH)
local names = count > 0
  and redis.call('ZRANGE', keys.queues(), offset or 0, (offset or 0) + count - 1) or {}
local paused = names[1] and redis.call('SMISMEMBER', keys.paused(), unpack(names))
for i, name in ipairs(names) do names[i] = listing.count_states(name, now, paused[i] == 1, day) end
return json.list(names)
