-- on_failure: what the failures of a klass' jobs put, as its handler declares it.
--
-- @when    declare                declare it; each starting worker does
-- @arg     klass    name
-- @arg     job      job_json
-- @arg     now      time
-- @returns nothing
-- @when    off                    remove what the code no longer declares
-- @rest    klasses  name
-- @returns nothing
-- @flags   allow-oom
-- @role    worker

if word == 'declare' then return failure_jobs.declare(klass, job, now) end
redis.call('HDEL', keys.on_failure(), unpack(klasses))
