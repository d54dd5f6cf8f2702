-- beat: a worker lives, says what it serves and has run; find out which others are gone.
--
-- @arg     worker   name
-- @arg     process  object        {id, host, pid} of the process, and other facts; each minute its
--                                 memory and busy slots are kept, its version is marked if new
-- @arg     now      time
-- @rest    queues   name          names and patterns that it serves
-- @option  after    string        ids of former processes of this name that have ended
-- @option  number   count         of the counts; those that were sent before are not added again
-- @option  counts   string        what ran since the former counts, see run_metrics.lua
-- @flags   allow-oom
-- @role    worker
-- @returns json                   {timeout: seconds without a beat after which it is gone, waits:
--                                 whether the jobs of a former process of this name are still to be
--                                 put back, and nothing was recorded, gone: [{worker, jobs}], the
--                                 workers found gone and how many jobs of each are put back}
-- @raises  NAMETAKEN

local rows = counts and run_metrics.parse(counts)
if rows and not number then errors.bad_argument('counts', nil, 'cannot be used without number') end
local found = {}
local since = beats.record(worker, process, queues, after, now, found)
if since then
  if rows and not beats.is_repeated(worker, process, number) then
    for _, row in ipairs(rows) do run_metrics.add(row[1], row[2], row[3], now) end
  end
  beats.find_gone(since, now, found)
end
return '{"timeout":' .. json.number(beats.timeout()) .. ',"waits":' .. tostring(not since)
  .. ',"gone":' .. json.list(found) .. '}'
