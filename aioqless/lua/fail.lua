-- fail: fail a job and file it under a failure group, until it is retried or deleted.
--
-- @arg     jid      any_jid
-- @arg     worker   text          the holder of a running job; empty: an operator, for other jobs
-- @arg     group    name          the kind of failure
-- @arg     message  text
-- @arg     now      time
-- @arg     data     data?         replaces the job's data if given
-- @option  fence    string        must be that of the run
-- @option  data_keys object       what its constraints take from the data (key_changes.lua)
-- @flags   allow-oom
-- @role    worker people
-- @durable
-- @returns text                   the jid
-- @raises  NOJOB BADSTATE LOCKLOST

local job
if worker ~= '' then
  job = record.require_held(jid, worker, fence)
else
  job = record.require(jid)
  if job.state == 'running' then
    errors.raise('LOCKLOST', 'only its holder can fail a running job', {
      jid = jid, holder = job.worker,
    })
  elseif job.state == 'failed' or job.state == 'complete' then
    errors.bad_state(job, 'the job has ended already')
  end
end
if data_keys then key_changes.apply(job, key_changes.merge(job, data_keys), now) end
if worker == '' then dependency.unlink_all(jid) end
if data then record.set_fields(jid, 'data', data) end
failing.fail(job, group, message, worker, now)
notes.find_stored(now)
return jid
