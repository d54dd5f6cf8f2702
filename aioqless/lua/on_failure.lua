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
-- @when    sweep                  react to failures that other clients stored, and to what they did
--                                 to members of job sets
-- @arg     now      time
-- @returns number                 seconds until the next call; 0: there is more to do
-- @flags   allow-oom
-- @role    worker

if word == 'declare' then return failure_jobs.declare(klass, job, now) end
if word == 'off' then
  redis.call('HDEL', keys.on_failure(), unpack(klasses))
else
  return set_reviews.sweep(now) and 0 or failure_sweep.sweep(now)
end
