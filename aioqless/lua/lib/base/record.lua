-- record: a job's hash, read as one table and checked before a command writes.
-- Callers may name a jid that ends as another key of a job does (`a-history`): an unknown one.

-- The fields that commands decide by; nil for a job that doesn't exist.
function record.read(jid)
  local f = redis.pcall('HMGET', keys.job(jid), 'jid', 'state', 'queue', 'worker', 'priority',
    'retries', 'remaining', 'time', 'tags', 'failure', 'scheduled', 'grace', 'history', 'x-fence',
    'x-put', 'x-constraints')
  if f.err then record.check_type(jid) end
  if not f[1] then return nil end
  return {
    jid = jid, state = f[2] or '', queue = f[3] or '', worker = f[4] or '',
    priority = tonumber(f[5]) or 0,
    retries = tonumber(f[6]) or constants.DEFAULT_RETRIES,
    remaining = tonumber(f[7]) or tonumber(f[6]) or constants.DEFAULT_RETRIES,
    time = tonumber(f[8]), time_text = f[8] or nil, tags = f[9], failure = f[10],
    scheduled = tonumber(f[11]), grace = f[12], fence = f[14],
    old_history = f[13] ~= '[]' and f[13] or nil,
    put = tonumber(f[15]), constraints = f[16],
  }
end

-- The fields that completing a run needs. Each field costs time, missing ones most.
function record.read_running(jid)
  local f = redis.pcall('HMGET', keys.job(jid), 'jid', 'state', 'queue', 'worker', 'retries',
    'time', 'x-fence', 'scheduled', 'grace', 'history', 'x-constraints')
  if f.err then record.check_type(jid) end
  if not f[1] then return nil end
  local job = {
    jid = jid, state = f[2] or '', queue = f[3] or '', worker = f[4] or '',
    retries = tonumber(f[5]) and f[5] or constants.DEFAULT_RETRIES, time = tonumber(f[6]),
    fence = f[7],
  }
  if f[10] == '[]' then f[10] = nil end
  if f[8] or f[9] or f[10] or f[11] then
    job.scheduled, job.grace, job.old_history, job.constraints = f[8], f[9], f[10], f[11]
  end
  return job
end

-- Raise the error of a key that is no hash, unless it is another key of a job.
function record.check_type(jid)
  if not args.is_key_of_job(jid) then redis.call('HLEN', keys.job(jid)) end
end

-- As record.read, cheaper if most jobs asked for are new.
function record.find(jid)
  if redis.call('EXISTS', keys.job(jid)) == 0 then return nil end
  return record.read(jid)
end

function record.require(jid)
  local job = record.read(jid)
  if not job then errors.no_such_job(jid) end
  return job
end

-- A running job whose lock this worker holds; with a fence, this very run. An empty name holds
-- nothing.
function record.require_held(jid, worker, fence, read)
  local job = (read or record.read)(jid)
  if not job then errors.no_such_job(jid) end
  if job.state ~= 'running' then errors.bad_state(job, 'the job is not running') end
  if job.worker ~= worker or worker == '' or (fence and fence ~= job.fence) then
    errors.raise('LOCKLOST', 'the lock is held by another run', {
      jid = jid, holder = job.worker, fence = job.fence or '',
    })
  end
  return job
end

-- Seconds as live clients write the field `time`.
function record.format_time(seconds) return string.format('%.6f', seconds) end

function record.set_fields(jid, ...) redis.call('HSET', keys.job(jid), ...) end

function record.delete_fields(jid, ...) redis.call('HDEL', keys.job(jid), ...) end
