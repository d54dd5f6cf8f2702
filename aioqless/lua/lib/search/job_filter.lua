-- job_filter: whether a job matches a filter, a list of conditions that it must all meet:
-- {key, values: [[text, is open at the start, is open at the end]]}, {key, least, most} of a number
-- below `most`, either with `negated`; of a member of the data also {path: [name or index]}.

-- Scanning blocks the server: longer data, and a job that costs more, is not searched.
local MOST_DATA, MOST_COST = 65536, 1000
local ENCODED = '^%s*{%s*"aioqless%-[es]'

function job_filter.parse(text)
  local valid, conditions = pcall(cjson.decode, text)
  valid = valid and type(conditions) == 'table'
  for _, condition in ipairs(valid and conditions or {}) do
    valid = valid and type(condition) == 'table' and type(condition.key) == 'string'
      and (type(condition.values) == 'table' or type(condition.least or condition.most) == 'number')
      and (condition.key ~= 'data' or type(condition.path) == 'table')
    for _, value in ipairs(valid and condition.values or {}) do
      valid = valid and type(value) == 'table' and type(value[1]) == 'string'
    end
  end
  if not valid then errors.bad_argument('conditions', text, 'is not a list of conditions') end
  return conditions
end

-- The values of the conditions of a key, if one lists whole texts; nil without one.
function job_filter.list_values(conditions, key)
  for _, condition in ipairs(conditions) do
    local texts = {}
    for i, value in ipairs(condition.key == key and not condition.negated and condition.values
      or {}) do
      texts[i] = not value[2] and not value[3] and value[1] or nil
    end
    if #texts > 0 and #texts == #condition.values then return texts end
  end
end

-- What a filter reads of a job; nil for one that doesn't exist. `cost` is about that of reading as
-- many jobs.
function job_filter.read(jid, now)
  local f = redis.pcall('HMGET', keys.job(jid), 'jid', 'klass', 'state', 'queue', 'worker',
    'expires', 'time', 'tags')
  if f.err or not f[1] then return nil end
  local expires = tonumber(f[6]) or 0
  local is_stalled = f[3] == 'running' and expires > 0 and expires < now
  return {
    jid = jid, klass = f[2] or '', state = is_stalled and 'stalled' or f[3] or '',
    queue = f[4] or '', worker = f[5] or '', time = tonumber(f[7]) or 0, tags = f[8],
    is_running = f[3] == 'running', cost = 1,
  }
end

function job_filter.matches(job, conditions, now)
  for _, condition in ipairs(conditions) do
    if job.cost > MOST_COST then
      job.is_unsearched = true
      return false
    end
    local is_met
    if condition.values then
      is_met = job_filter.has_text(job, condition)
    else
      local number = condition.key == 'time' and job_filter.read_time(job)
        or condition.key == 'run' and job_filter.read_run_time(job, now)
      is_met = number and number >= (condition.least or -math.huge)
        and number < (condition.most or math.huge)
    end
    if not is_met == not condition.negated or job.is_unsearched then return false end
  end
  return true
end

function job_filter.has_text(job, condition)
  local texts = job_filter.list_texts(job, condition)
  job.cost = (job.cost or 0) + #texts * #condition.values / 50
  for _, text in ipairs(texts) do
    for _, value in ipairs(condition.values) do
      if job_filter.is_like(text, value[1], value[2], value[3]) then return true end
    end
  end
  return false
end

function job_filter.is_like(text, wanted, open_start, open_end)
  if open_start and open_end then return string.find(text, wanted, 1, true) ~= nil end
  if open_start then return wanted == '' or string.sub(text, -#wanted) == wanted end
  if open_end then return string.sub(text, 1, #wanted) == wanted end
  return text == wanted
end

-- The texts of a job that a condition is about.
function job_filter.list_texts(job, condition)
  local key = condition.key
  if key == 'data' then return {job_filter.read_member(job, condition)} end
  if key == 'tag' then return json.parse_texts(job.tags) end
  if key == 'text' then
    local wanted = condition.values[1][1]
    return {job.jid,
      string.find(string.lower(job.klass), string.lower(wanted), 1, true) and wanted or nil}
  end
  local text = job[key]
  if key == 'group' and job.state == 'failed' then
    local failure = job_filter.read_failure(job)
    text = json.to_text(failure.group or failure.type)
  elseif key == 'worker' and job.state == 'failed' then
    text = json.to_text(job_filter.read_failure(job).worker)
  elseif job.state == 'complete' and (key == 'queue' or key == 'worker') then
    text = job_filter.read_last_run(job)[key]
  end
  return {text ~= '' and text or nil}
end

function job_filter.read_failure(job)
  job.failure = job.failure or json.parse_object(redis.call('HGET', keys.job(job.jid), 'failure'))
  return job.failure
end

-- Since when it is in its state.
function job_filter.read_time(job)
  return job.state == 'failed' and tonumber(job_filter.read_failure(job).when) or job.time
end

function job_filter.read_last_run(job)
  if not job.last_run then
    job.last_run, job.cost = history.read_last_run(job.jid), job.cost + 2
  end
  return job.last_run
end

-- How long its run has taken; nil without one.
function job_filter.read_run_time(job, now)
  if job.is_running then return math.max(0, now - job.time) end
  if job.state ~= 'complete' and job.state ~= 'failed' then return nil end
  local run = job_filter.read_last_run(job)
  return run.started and run.ended and math.max(0, run.ended - run.started)
end

-- The text of a scalar of the data; nil without one. Most data doesn't contain the value anywhere,
-- which is quickly known.
function job_filter.read_member(job, condition)
  local key = keys.job(job.jid)
  job.data = job.data or redis.call('HSTRLEN', key, 'data') <= MOST_DATA
    and (redis.call('HGET', key, 'data') or 'null')
  job.cost = job.cost + 0.5 + (job.data and #job.data / 2000 or 0)
  if not job.data or string.find(job.data, ENCODED) then
    job.is_unsearched = true
    return nil
  end
  local is_possible = false
  for _, value in ipairs(condition.values) do
    is_possible = is_possible or string.find(value[1], '[^%w_.-]')
      or string.find(job.data, value[1], 1, true)
  end
  if not is_possible then return nil end
  job.cost = job.cost + #job.data / 100
  local valid, text = pcall(json_slices.read_scalar, job.data, condition.path)
  return valid and text or nil
end
