-- complete: complete a running job, or move it on to another queue.
--
-- @arg     jid      any_jid
-- @arg     worker   text          must hold the lock
-- @arg     queue    text          the queue that the job runs in
-- @arg     now      time
-- @arg     data     data?         replaces the job's data; empty keeps the stored bytes
-- @option  next     name          the next queue
-- @option  delay    seconds       with next only
-- @option  depends  jids          with next only
-- @option  fence    string        must be that of the run
-- @option  data_keys object       what its constraints take from the data (key_changes.lua)
-- @option  result   text          the result to keep: TTL in seconds, a space, JSON; not with next
-- @option  durable  string        its runs may have stored steps, which are deleted, or another job
--                                 has called it: 1, or 1, a space and its result as JSON
-- @flags   allow-oom
-- @role    worker people
-- @durable
-- @returns text                   the new state
-- @raises  NOJOB BADSTATE LOCKLOST

local ended = completion.begin(now)
local state = completion.complete({
  jid = jid, worker = worker, queue = queue, now = now, data = data, next = next, delay = delay,
  depends = depends, fence = fence,
  result = result, durable = durable, data_keys = data_keys,
}, ended)
completion.flush(ended, worker, now)
return state
