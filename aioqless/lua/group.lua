-- group: the jids of a failure group, the latest first.
--
-- @arg     group    string
-- @arg     offset   count?
-- @arg     count    count?        default 25; at most 1,000
-- @flags   no-writes
-- @returns list

count = math.min(count or 25, 1000)
if count == 0 then return {} end
return redis.call('LRANGE', keys.group(group), offset or 0, (offset or 0) + count - 1)
