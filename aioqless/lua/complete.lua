-- complete: a run is done; the job ends, or goes on in another queue.
--
-- @arg     jid      any_jid
-- @arg     worker   text          must hold the lock
-- @arg     queue    text          where the job runs
-- @arg     now      time
-- @arg     data     data?         replaces the job's data; empty keeps the stored bytes
-- @option  next     name          the queue to go on in
-- @option  delay    seconds       with next only
-- @option  depends  jids          with next only
-- @option  fence    string        must be that of the run
-- @option  result   text          kept of it: for how many seconds, a space, JSON; without next only
-- @flags   allow-oom
-- @returns text                   the new state
-- @raises  NOJOB BADSTATE LOCKLOST

local state = completion.complete({
  jid = jid, worker = worker, queue = queue, now = now, data = data, next = next, delay = delay, depends = depends, fence = fence,
  result = result,
})
completion.flush(worker, now)
if state == 'complete' then retention.prune_completed(now, 22) end
dependency.run_deferred(now)
return state
