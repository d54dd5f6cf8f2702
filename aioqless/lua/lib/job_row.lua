-- job_row: a popped job as its worker gets it: its fields in a fixed order, cheaper than JSON.

-- The order of the fields; Python reads this list. Every job has the first twelve.
local ROW = {
  'jid', 'state', 'queue', 'worker', 'priority', 'retries', 'remaining', 'time', 'tags', 'klass',
  'data', 'expires', 'x-fence', 'failure', 'spawned_from_jid', 'x-context', 'x-start-by',
}
local PLAIN = 12
local rows = {}

-- Read a job that is about to be popped, with its row. One that has the first twelve fields and no
-- others has none of the rare ones: not reading them saves time.
function job_row.read(jid)
  local key = keys.job(jid)
  local row = redis.call('HMGET', key, unpack(ROW, 1, PLAIN))
  if not row[1] then return nil end
  local job = {jid = jid, time = tonumber(row[8]), time_text = row[8] or nil, row = row}
  if redis.call('HLEN', key) ~= PLAIN or not job_row.is_complete(row) then
    local rare = redis.call('HMGET', key, 'grace', 'history', 'x-put', 'x-terms',
      unpack(ROW, PLAIN + 1))
    job.grace, job.old_history, job.put, job.terms = rare[1], rare[2], tonumber(rare[3]), rare[4]
    for i = PLAIN + 1, #ROW do row[i] = rare[i - PLAIN + 4] end
  end
  return job
end

function job_row.is_complete(row)
  return row[2] and row[3] and row[4] and row[5] and row[6] and row[7] and row[8] and row[9]
    and row[10] and row[11] and row[12]
end

-- Keep the row of a job that this call has locked, with the fields that the lock changed. Behind
-- them is for how many seconds the job could have been running, if that is known.
function job_row.keep(job, worker, expires, time, fence, now)
  local row, since = job.row, job.ready_since
  local waited = since and string.format('%.3f', math.max(0, now - since)) or false
  rows[job.jid] = {
    row[1], 'running', row[3], worker, row[5], row[6], row[7], time, row[9], row[10], row[11],
    expires, fence, row[14] or false, row[15] or false, row[16] or false, row[17] or false,
    waited,
  }
end

-- The rows of the jobs that the worker holds. A repeated call has none in memory and reads them,
-- without the wait.
function job_row.list(jids, worker)
  local held = {}
  for _, jid in ipairs(jids) do
    local row = rows[jid]
    if not row then
      row = redis.call('HMGET', keys.job(jid), unpack(ROW))
      row[#ROW + 1] = false
    end
    if row[2] == 'running' and row[4] == worker then held[#held + 1] = row end
  end
  return held
end
