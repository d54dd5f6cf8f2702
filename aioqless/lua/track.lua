-- track: track jobs: publish each of their events.
--
-- @when    list default           list the tracked jobs
-- @returns json                   {jobs: [job], expired: [jid]}, oldest first; the latest 1,000
-- @when    track                  track a job
-- @arg     jid      string
-- @arg     now      time
-- @rest    tags     name          added to the job
-- @returns count                  1; 0 if it was tracked already
-- @when    untrack                stop tracking a job
-- @arg     jid      string        may be gone
-- @arg     now      time
-- @returns count                  1; 0 if it wasn't tracked
-- @flags   allow-oom
-- @role    producer
-- @durable
-- @raises  NOJOB

if word == 'list' then
  local jobs, expired = {}, {}
  local tracked = redis.call('ZRANGE', keys.tracked(), -constants.MAX_BATCH, -1)
  for _, each_jid in ipairs(tracked) do
    local job = view.encode(each_jid, #tracked)
    if job then jobs[#jobs + 1] = job else expired[#expired + 1] = each_jid end
  end
  return '{"jobs":' .. json.list(jobs) .. ',"expired":' .. json.texts(expired) .. '}'
elseif word == 'untrack' then
  redis.call('PUBLISH', keys.event_channel('untrack'), jid)
  return tostring(redis.call('ZREM', keys.tracked(), jid))
end
local job = record.require(jid)
tagging.add(job, tags, now)
redis.call('PUBLISH', keys.event_channel('track'), jid)
return tostring(redis.call('ZADD', keys.tracked(), now, jid))
