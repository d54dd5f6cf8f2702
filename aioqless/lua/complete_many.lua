-- complete_many: complete many jobs of one worker; a refused one doesn't affect the others.
--
-- @arg     worker   string
-- @arg     now      time
-- @batch   jid:any_jid queue:text fence:string? data:data? next:name? delay:seconds? depends:jids?
-- @batch   result:text? durable:string? data_keys:object?
-- @flags   allow-oom
-- @role    worker
-- @returns answers                the new state or an error for each
-- @raises  NOJOB BADSTATE LOCKLOST

local ended = completion.begin(now)
local states = each(function(jid, queue, fence, data, next, delay, depends, result, durable,
    data_keys)
  return completion.complete({
    jid = jid, worker = worker, queue = queue, now = now, data = data, next = next, delay = delay,
    depends = depends, fence = fence,
    result = result, durable = durable, data_keys = data_keys,
  }, ended)
end)
completion.flush(ended, worker, now)
return states
