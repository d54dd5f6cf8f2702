-- totals: what a day came to so far in each queue.
--
-- @arg     date     time          any time of the day
-- @arg     offset   count?
-- @arg     count    count?        default and at most 1,000
-- @flags   no-writes
-- @returns json                   [{name, popped, completed, failures, retries}], by when each was first seen

count = math.min(count or 1000, 1000)
local names = count > 0 and redis.call('ZRANGE', keys.queues(), offset or 0, (offset or 0) + count - 1) or {}
local day = stats.day(date)
for i, name in ipairs(names) do names[i] = '{"name":' .. cjson.encode(name) .. ',' .. stats.totals(day, name) .. '}' end
return json.list(names)
