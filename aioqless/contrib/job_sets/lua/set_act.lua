-- set_act: act on members of a job set, a bounded number per call.
--
-- @arg     set_name string
-- @arg     now      time
-- @arg     cursor   count         0, then what the last call returned
-- @when    retry                  retry failed members
-- @returns texts                  the next cursor, 0 at the end; the number of members changed
-- @when    cancel                 close the set and cancel members that have not ended
-- @arg     place    string        open, then held
-- @option  actor    name          who cancels, for the archive
-- @returns texts
-- @flags   allow-oom
-- @role    producer
-- @durable
-- @raises  NOSET

local PORTION = 100
local set = job_sets.require(set_name)
local at = string.format('%.0f', cursor)
local next_cursor, count
if word == 'retry' then
  next_cursor, count = job_sets.walk(set, 'failed', at, PORTION,
    function(jid) return job_sets.retry(set, jid, now) end)
else
  if place ~= 'open' and place ~= 'held' then
    errors.bad_argument('place', place, 'must be open or held')
  end
  job_sets.close(set, now)
  next_cursor, count = job_sets.walk(set, place, at, PORTION,
    function(jid) return job_sets.cancel(set, jid, place, now, actor) end)
end
return {next_cursor, string.format('%d', count)}
