-- set_status: job sets, with the numbers of their members.
--
-- @when    one                    one set, with its failure groups
-- @arg     set_name string
-- @returns texts                  JSON of the set, and of the groups
-- @when    page                   a page of all sets, the latest first
-- @arg     offset   count
-- @arg     most     count
-- @returns texts                  JSON of each
-- @when    members                a portion of a set's members
-- @arg     set_name string
-- @arg     place    string        open, held, failed, canceled, or results: those that kept one
-- @arg     cursor   count         0, then what the last call returned
-- @returns texts                  the next cursor, 0 at the end, and the jids
-- @flags   no-writes
-- @raises  NOSET

local PORTION = 100
local LISTED = {open = true, held = true, failed = true, canceled = true, results = true}
if word == 'one' then
  local set = job_sets.require(set_name)
  return {job_sets.describe(set), job_sets.list_groups(set)}
end
local found = {}
if word == 'page' then
  local sets = redis.call('ZRANGE', keys.sets(), offset, offset + math.min(most, PORTION) - 1,
    'REV', 'WITHSCORES')
  for i = 2, #sets, 2 do found[i / 2] = job_sets.describe(string.format('%.0f', sets[i])) end
  return found
end
if not LISTED[place] then
  errors.bad_argument('place', place, 'must be open, held, failed, canceled or results')
end
local step = redis.call('SSCAN', keys.members(job_sets.require(set_name), place),
  string.format('%.0f', cursor), 'COUNT', PORTION)
for i, jid in ipairs(step[2]) do found[i] = jid end
table.insert(found, 1, step[1])
return found
