-- revive: retry failed jobs, each in the queue that it failed in. Jobs without a queue stay failed.
--
-- @when    group                  retry failed jobs of a group, each in the queue that it failed in
-- @arg     group    string
-- @arg     now      time
-- @arg     count    count?        maximum number of jobs, oldest first, at most 1,000; 25 unless
--                                 given
-- @returns count                  the number of jobs retried
-- @when    job                    retry a failed job in the queue that it failed in
-- @arg     jid      string
-- @arg     now      time
-- @arg     data     data?         replaces the job's data if given
-- @arg     was      text?         the job's data as the caller read it; refused if it has changed
-- @arg     from_step text?        forget this step, and those stored after it
-- @option  data_keys object       what its constraints take from the data (key_changes.lua)
-- @returns count                  1
-- @flags   allow-oom
-- @role    dashboard
-- @durable
-- @raises  NOJOB BADSTATE

if word == 'job' then
  local job = record.require(jid)
  if job.state ~= 'failed' then errors.bad_state(job, 'the job has not failed') end
  if was and was ~= redis.call('HGET', keys.job(jid), 'data') then
    errors.bad_state(job, 'its data has changed meanwhile')
  end
  if job.queue == '' then errors.bad_state(job, 'the job has no queue; move it to one') end
  local constraints = data_keys and key_changes.merge(job, data_keys)
  if from_step and from_step ~= '' then steps.forget(jid, from_step) end
  failures.leave_group(job)
  if data then record.set_fields(jid, 'data', data) end
  if constraints then key_changes.apply(job, constraints, now) end
  revival.put_back(job, job.queue, now)
  queue_sets.register_queue(job.queue, now)
  return '1'
end
local revived, without_queue = 0, {}
for _ = 1, math.min(count or 25, constants.MAX_BATCH) do
  local next_jid = redis.call('RPOP', keys.group(group))
  if not next_jid then break end
  local job = record.read(next_jid)
  if job and job.state == 'failed' and job.queue == '' then
    without_queue[#without_queue + 1] = next_jid
  elseif job and job.state == 'failed' then
    failures.stop_counting(job)
    revival.put_back(job, job.queue, now)
    queue_sets.register_queue(job.queue, now)
    revived = revived + 1
  end
end
for i = #without_queue, 1, -1 do redis.call('RPUSH', keys.group(group), without_queue[i]) end
failures.drop_empty_group(group)
return tostring(revived)
