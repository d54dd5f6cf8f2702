-- complete_many: complete many jobs of one worker; a refused one doesn't affect the others.
--
-- @arg     worker   string
-- @arg     now      time
-- @batch   jid:any_jid queue:text fence:string? data:data?
-- @options completion
-- @flags   allow-oom
-- @role    worker
-- @returns answers                the new state or an error for each
-- @raises  NOJOB BADSTATE LOCKLOST

local ended = completion.begin(worker, now)
local states = each(function(jid, queue, fence, data, options)
  return completion.complete(ended, jid, queue, fence, data, options)
end)
completion.flush(ended)
return states
