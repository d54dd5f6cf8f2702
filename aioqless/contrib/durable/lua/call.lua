-- call: put a job for a running one, once, and return how it has ended, if it has.
--
-- @arg     jid      any_jid
-- @arg     worker   text          must hold the lock
-- @arg     now      time
-- @arg     name     name
-- @arg     child    job_json      the job, with its queue, as on_failure has it
-- @option  fence    string        must be that of the run
-- @option  detach   string        it is not canceled together with the job that calls it
-- @flags   allow-oom
-- @role    worker
-- @durable
-- @returns texts                  called and the entry; or call and the jid of the job
-- @raises  NOJOB BADSTATE LOCKLOST EXISTS

return calls.put(record.require_held(jid, worker, fence), name, child, detach, now)
