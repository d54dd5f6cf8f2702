-- failed: the number of failed jobs in each group, or the jobs of one group.
--
-- @arg     group    string?
-- @arg     offset   count?
-- @arg     count    count?        at most 1,000; 25 unless given
-- @flags   no-writes
-- @role    archiver
-- @returns json                   {group: count} of at most 10,000 groups, or {total, jobs}, newest
--                                 first, each job with the `message` and `group` of its failure

if group then
  return view.encode_group(group, offset or 0, math.min(count or 25, constants.MAX_BATCH))
end
local counts = {}
for _, name in ipairs(redis.call('SRANDMEMBER', keys.failures(), 10000)) do
  counts[#counts + 1] = cjson.encode(name) .. ':' .. redis.call('LLEN', keys.group(name))
end
return '{' .. table.concat(counts, ',') .. '}'
