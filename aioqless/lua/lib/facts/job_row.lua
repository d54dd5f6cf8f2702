-- job_row: a popped job as its worker gets it: its fields in a fixed order, cheaper than JSON.

-- The order of the fields; Python reads this list. Only a job with one of the rare fields, the last
-- eight, has these in its row, and behind them the name of its job set. Its state and its worker
-- are those of all rows. The last place has for how many seconds the job could have been running,
-- if that is known.
local ROW = {
  'jid', 'queue', 'priority', 'retries', 'remaining', 'tags', 'klass', 'data', 'expires', 'x-fence',
  'failure', 'spawned_from_jid', 'x-context', 'x-expiry', 'x-cause', 'x-parent', 'x-bulk',
  'x-constraints',
}
local EXPIRES = 9
local FENCE = 10
local BULK = 17
local RAREST = 18
local SET = 19
-- A job has these fields since it was put, and most jobs no others until they are popped: the first
-- eight of ROW, and `state`, `time`, `history`.
local PLAIN = 11

-- Read a job that is about to be popped, with its row. Skipping rare fields saves time.
function job_row.read(jid)
  local key = keys.job(jid)
  local row = redis.call('HMGET', key, 'jid', 'queue', 'priority', 'retries', 'remaining', 'tags',
    'klass', 'data', 'time', 'history')
  if not row[1] then return nil end
  local time = row[EXPIRES]
  local job = {jid = jid, time = tonumber(time), time_text = time or nil, row = row}
  if row[FENCE] ~= '[]' then job.old_history = row[FENCE] end
  if redis.call('HLEN', key) ~= PLAIN or not (time and row[2] and row[3] and row[4] and row[5]
    and row[6] and row[7] and row[8] and row[FENCE]) then
    job_row.read_rare(job, key)
  end
  return job
end

-- Read the other fields of a job. Only then does a script need the names of all.
function job_row.read_rare(job, key)
  local rare = redis.call('HMGET', key, 'grace', 'x-put', 'x-turn', unpack(ROW, FENCE + 1))
  job.grace, job.put, job.turn = rare[1], tonumber(rare[2]), rare[3]
  job.constraints = rare[RAREST - FENCE + 3]
  job.has_rare = job_row.has_rare(rare, 4)
  if not job.has_rare then return end
  for i = FENCE + 1, #ROW do job.row[i] = rare[i - FENCE + 3] end
  job.row[SET] = members.find_name(job.constraints)
end

function job_row.has_rare(values, first)
  return values[first] or values[first + 1] or values[first + 2] or values[first + 3]
    or values[first + 4] or values[first + 5] or values[first + 6] or values[first + 7]
end

-- Keep the row of a job that this call has locked.
function job_row.keep(job, expires, fence, now)
  local row, since = job.row, job.ready_since
  row[EXPIRES], row[FENCE] = expires, fence
  if job.bulk then
    redis.call('HSET', keys.job(job.jid), 'x-bulk', job.bulk)
    for i = FENCE + 1, SET do row[i] = row[i] or false end
    job.has_rare = true
  end
  if job.has_rare then row[BULK] = job.bulk or false end
  row[(job.has_rare and SET or FENCE) + 1] = since
    and string.format('%.3f', math.max(0, now - since)) or false
  call.rows = call.rows or {}
  call.rows[job.jid] = row
end

-- What a repeated call gets: the jid of each job, and for how long it could have been running.
function job_row.remember(jids)
  local rows, answer = call.rows or {}, {}
  for i, jid in ipairs(jids) do
    local row = rows[jid]
    answer[2 * i - 1], answer[2 * i] = jid, row and row[#row] or false
  end
  return answer
end

-- The rows of the jobs of an answer that the worker holds. A repeated call reads them.
function job_row.list(answer, worker)
  local held, rows = {}, call.rows or {}
  for i = 1, #answer, 2 do
    held[#held + 1] = rows[answer[i]] or job_row.read_held(answer[i], worker, answer[i + 1])
  end
  return held
end

function job_row.read_held(jid, worker, waited)
  local row = redis.call('HMGET', keys.job(jid), 'state', 'worker', unpack(ROW))
  if row[1] ~= 'running' or row[2] ~= worker then return nil end
  local has_rare = job_row.has_rare(row, FENCE + 3)
  local held = {unpack(row, 3, (has_rare and RAREST or FENCE) + 2)}
  if has_rare then held[SET] = members.find_name(row[RAREST + 2]) end
  held[#held + 1] = waited
  return held
end
