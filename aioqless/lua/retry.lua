-- retry: run a job again, now or later, which uses one of its retries; without any left it fails.
--
-- @arg     jid      any_jid
-- @arg     queue    text          the queue that the job runs in
-- @arg     worker   text          must hold the lock
-- @arg     now      time
-- @arg     delay    seconds?
-- @option  group    name          the kind of failure, kept with the job; the failure group if it
--                                 fails
-- @option  message  text
-- @option  data     data          replaces the job's data
-- @option  data_keys object       what its constraints take from it (key_changes.lua)
-- @option  fence    string        must be that of the run
-- @flags   allow-oom
-- @role    worker people
-- @durable
-- @returns count                  the remaining retries; negative: the job has failed; as many as
--                                 before: it is complete, since a newer one has its key (debounce)
-- @raises  NOJOB BADSTATE LOCKLOST

local job = record.require_held(jid, worker, fence)
if job.queue ~= queue then errors.bad_state(job, 'the job runs in another queue') end
if data_keys then key_changes.apply(job, key_changes.merge(job, data_keys), now) end
if data then record.set_fields(jid, 'data', data) end
local remaining = job.remaining - 1
if remaining < 0 then
  record.set_fields(jid, 'remaining', remaining)
  failing.fail_exhausted(job, group, message, worker, now)
  return json.number(remaining)
end
release.remove_from_worker(job, now)
local newer = job.constraints and debounce.find_successor(job, now)
if newer then
  completion.supersede(job, newer, now)
  return json.number(job.remaining)
end
stats.count(queue, now, 'x-retries', 1)
history.append(jid, job, now, 'retried', cjson.encode({
  group = group, error = message and summaries.read_last_line(message),
}))
if archive.is_on() then archive.append_run(job, now, 'retried', group, message) end
if group and message then
  record.set_fields(jid, 'failure', failures.encode(group, message, worker, now))
end
local state = placement.put(jid, queue, job.priority, delay or 0, now, false, job.constraints)
record.set_fields(jid, 'state', state, 'remaining', remaining, 'time', record.format_time(now))
return json.number(remaining)
