-- archive_backfill: jobs that other clients of qless completed or failed, or that ended before the archive was on: they are archived as soon as
-- one of our scripts meets them, or at the latest before it lets go of them.

local MOST_EVENTS = 100

-- Appends the end of such a job, as far as it and its history tell.  Returns whether it had to.
-- @seldom
function archive_backfill.append(job)
  if job.state ~= 'complete' and job.state ~= 'failed' then return false end
  local marked = redis.call('HGET', keys.job(job.jid), 'x-archived')
  if marked and marked == (job.time_text or '') then return false end
  local items = redis.call('LRANGE', keys.history(job.jid), -MOST_EVENTS, -1)
  local run, time, what, failure = archive_backfill.read_latest_run(items), job.time or 0, 'complete', {}
  if job.state == 'failed' then
    what, failure = 'fail', json.parse_object(job.failure)
    if run.popped and math.floor(time) == run.popped then run.popped = time end
  end
  archive.append(job, what, tonumber(failure.when) or time, {
    queue = job.queue ~= '' and job.queue or run.queue, state = job.state, worker = run.worker, put = run.put, popped = run.popped,
    group = archive_backfill.read_text(failure.group or failure.type), message = archive_backfill.read_text(failure.message), history = json.list(items),
  })
  record.set_fields(job.jid, 'x-archived', job.time_text or '')
  return true
end

function archive_backfill.read_text(value) return type(value) == 'string' and value or nil end

-- What a history's last stage was, from its end: its queue, when the job came in, and the last run if it had one.
function archive_backfill.read_latest_run(items)
  local run = {}
  for i = #items, 1, -1 do
    local event = json.parse_list(items[i])
    local extra = type(event[3]) == 'table' and event[3] or {}
    if event[2] == 'popped' and not run.popped then
      run.popped, run.worker = tonumber(event[1]), type(extra.worker) == 'string' and extra.worker or nil
    elseif event[2] == 'put' then
      run.put, run.queue = tonumber(event[1]), type(extra.q) == 'string' and extra.q or nil
      break
    end
  end
  return run
end
