-- archive_backfill: archive jobs that other qless clients completed or failed, or that ended before
-- the archive was on: when one of our scripts meets them, at the latest before it deletes them.

local MOST_EVENTS = 100

-- Append the end of such a job, as far as it and its history tell. Return whether it was missing.
function archive_backfill.append(job)
  if job.state ~= 'complete' and job.state ~= 'failed' then return false end
  local marked = redis.call('HGET', keys.job(job.jid), 'x-archived')
  if marked and marked == (job.time_text or '') then return false end
  local items = redis.call('LRANGE', keys.history(job.jid), -MOST_EVENTS, -1)
  local run, time, what, failure = archive_backfill.read_latest_run(items), job.time or 0,
    'complete', {}
  if job.state == 'failed' then
    what, failure = 'fail', json.parse_object(job.failure)
    if run.popped and math.floor(time) == run.popped then run.popped = time end
  end
  archive.append(job, what, tonumber(failure.when) or time, {
    queue = job.queue ~= '' and job.queue or run.queue, state = job.state, worker = run.worker,
    put = run.put, popped = run.popped,
    group = archive_backfill.read_text(failure.group or failure.type),
    message = archive_backfill.read_text(failure.message), history = json.list(items),
  })
  record.set_fields(job.jid, 'x-archived', job.time_text or '')
  return true
end

function archive_backfill.read_text(value) return type(value) == 'string' and value or nil end

-- The last stage in a history: its queue, when the job was put there, and its last run, if any.
function archive_backfill.read_latest_run(items)
  local run = {}
  for i = #items, 1, -1 do
    local event = json.parse_list(items[i])
    local extra = type(event[3]) == 'table' and event[3] or {}
    local at = tonumber(event[1]) and history.read_time(event)
    if event[2] == 'popped' and not run.popped then
      run.popped, run.worker = at,
        type(extra.worker) == 'string' and extra.worker or nil
    elseif event[2] == 'put' then
      run.put, run.queue = at, type(extra.q) == 'string' and extra.q or nil
      break
    end
  end
  return run
end
