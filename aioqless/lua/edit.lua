-- edit: give a job other data. Its state, when it is due, and all else stay as they are.
--
-- @arg     jid      string
-- @arg     now      time
-- @arg     data     data
-- @arg     was      text?         the job's data as the caller read it; refused if it has changed
-- @option  data_keys object       what its constraints take from the data (key_changes.lua)
-- @flags   allow-oom
-- @role    dashboard
-- @durable
-- @returns nothing
-- @raises  NOJOB BADSTATE

local job = record.require(jid)
if job.state == 'running' then errors.bad_state(job, 'the job is running') end
if job.state == 'complete' then errors.bad_state(job, 'the job is complete') end
if was and was ~= redis.call('HGET', keys.job(jid), 'data') then
  errors.bad_state(job, 'its data has changed meanwhile')
end
if data_keys then
  key_changes.apply_in_queue(job, key_changes.merge(job, data_keys), now)
end
record.set_fields(jid, 'data', data)
