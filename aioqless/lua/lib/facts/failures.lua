-- failures: fail jobs, and maintain failure groups.

local NEAR = 1000

-- A job's failure record. `when` is rounded down, as live clients do.
function failures.encode(group, message, worker, now)
  return '{"group":' .. cjson.encode(group) .. ',"message":' .. cjson.encode(message) .. ',"when":'
    .. string.format('%.0f', math.floor(now)) .. ',"worker":' .. cjson.encode(worker) .. '}'
end

-- Remove a failed job from its group. The failure record stays with the job until it completes.
function failures.leave_group(job)
  local group = failures.group_of(job.failure)
  if group then
    redis.call('LREM', keys.group(group), failures.is_near_tail(group, job.jid) and -1 or 1,
      job.jid)
    failures.drop_empty_group(group)
  end
  failures.stop_counting(job)
end

-- Whether a job is found faster from the tail of its group's list.
function failures.is_near_tail(group, jid)
  return redis.call('LLEN', keys.group(group)) > NEAR
    and redis.call('LPOS', keys.group(group), jid, 'RANK', -1, 'MAXLEN', NEAR)
end

-- Undo what counts a job as failed: its expiry, and the counter of the day and queue that it failed
-- in, if still kept.
function failures.stop_counting(job)
  notes.remove('failed expired', job.jid)
  local when = tonumber(json.parse_object(job.failure).when)
  if when and stats.read_count(job.queue, when, 'failed') > 0 then
    stats.count(job.queue, when, 'failed', -1)
  end
end

function failures.drop_empty_group(group)
  if redis.call('EXISTS', keys.group(group)) == 0 then
    redis.call('SREM', keys.failures(), group)
  end
end

-- The group of a failure record; nil if it can't be read.
function failures.group_of(text)
  local failure = json.parse_object(text)
  local group = failure.group or failure.type
  return (type(group) == 'string' or type(group) == 'number') and json.to_text(group) or nil
end
