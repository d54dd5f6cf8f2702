-- unfail: retry failed jobs of a group in a given queue, oldest first.
--
-- @key     queue    new_queue
-- @arg     group    string
-- @arg     now      time
-- @arg     count    count?        at most 1,000; 25 unless given
-- @flags   allow-oom
-- @role    dashboard
-- @durable
-- @returns count                  the number of jobs moved
-- @raises

local moved = 0
for _ = 1, math.min(count or 25, constants.MAX_BATCH) do
  local jid = redis.call('RPOP', keys.group(group))
  if not jid then break end
  local job = record.read(jid)
  if job and job.state == 'failed' then
    failures.stop_counting(job)
    revival.put_back(job, queue, now)
    moved = moved + 1
  end
end
failures.drop_empty_group(group)
if moved > 0 then queue_sets.register_queue(queue, now) end
return tostring(moved)
