-- complete: complete a running job, or move it on to another queue.
--
-- @arg     jid      any_jid
-- @arg     worker   text          must hold the lock
-- @arg     queue    text          the queue that the job runs in
-- @arg     now      time
-- @arg     data     data?         replaces the job's data; empty keeps the stored bytes
-- @option  fence    string        must be that of the run
-- @options completion
-- @flags   allow-oom
-- @role    worker people
-- @durable
-- @returns text                   the new state
-- @raises  NOJOB BADSTATE LOCKLOST

local ended = completion.begin(worker, now)
local state = completion.complete(ended, jid, queue, fence, data, options)
completion.flush(ended)
return state
