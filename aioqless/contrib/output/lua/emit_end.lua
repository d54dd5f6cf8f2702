-- emit_end: store how many values a run has emitted, of which Redis has refused the last ones.
--
-- @arg     jid      any_jid
-- @arg     worker   text          must hold the lock
-- @arg     now      time
-- @arg     fence    string
-- @arg     start    count         how many it has emitted
-- @arg     values   string        an empty JSON array, perhaps encrypted
-- @arg     ttl      count         seconds that the output is kept
-- @option  keep     string        continue that of an earlier run
-- @flags   allow-oom
-- @role    worker
-- @returns nothing
-- @raises  NOJOB BADSTATE LOCKLOST

local job = record.require_held(jid, worker, fence, record.read_running)
output_entries.append(job, start, 0, values, ttl, keep)
output_entries.wake_readers({jid})
