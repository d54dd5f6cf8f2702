-- group: the jids of a failure group, newest first.
--
-- @arg     group    string
-- @arg     offset   count?
-- @arg     count    count?        at most 1,000; 25 unless given
-- @flags   no-writes
-- @returns texts

count = math.min(count or 25, constants.MAX_BATCH)
if count == 0 then return {} end
return redis.call('LRANGE', keys.group(group), offset or 0, (offset or 0) + count - 1)
