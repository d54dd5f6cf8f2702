-- beat: a worker lives, and says what it serves; find out which others are gone.
--
-- @arg     worker   name
-- @arg     process  object        {id, host, pid} of the process
-- @arg     now      time
-- @rest    queues   name          names and patterns that it serves
-- @option  after    string        ids of former processes of this name that have ended
-- @flags   allow-oom
-- @role    worker
-- @returns json                   {timeout: seconds without a beat after which it is gone, waits:
--                                 whether the jobs of a former process of this name are still to be
--                                 put back, and nothing was recorded, gone: [{worker, jobs}], the
--                                 workers found gone and how many jobs of each are put back}
-- @raises  NAMETAKEN

local found = {}
local since = beats.record(worker, process, queues, after, now, found)
if since then beats.find_gone(since, now, found) end
return '{"timeout":' .. json.number(beats.timeout()) .. ',"waits":' .. tostring(not since)
  .. ',"gone":' .. json.list(found) .. '}'
