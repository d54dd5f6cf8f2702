-- summaries: short views of jobs, failure groups and workers, for lists. Only that of a complete
-- job reads a history, of which it needs the end.

local MESSAGE = 1000
local HEAD, LAST, ENDING, LINE = 250, 600, 700, 200
local DATA = 2000

-- The beginning of a string, without cutting a character.
function summaries.truncate(text, most)
  if #text <= most then return text end
  while most > 0 and string.byte(text, most + 1) >= 128 and string.byte(text, most + 1) < 192 do
    most = most - 1
  end
  return string.sub(text, 1, most)
end

-- A long message without its middle: a traceback says at its end what happened, and just before
-- where.
function summaries.shorten_message(text)
  if #text <= MESSAGE then return text end
  local stop = #text
  while stop > #text - HEAD and string.byte(text, stop) <= 32 do stop = stop - 1 end
  local ending = string.sub(text, math.max(1, stop - 16 * MESSAGE), stop)
  local last = string.match(ending, '^.*\n([^\n]*)$')
  if not last then return summaries.truncate(text, MESSAGE) end
  if #last < LAST then last = string.match(string.sub(ending, -ENDING), '\n(.*)$') end
  return summaries.truncate(text, HEAD) .. '\n…\n' .. summaries.truncate(last, ENDING)
end

-- The last line of a message, which names the error of a traceback, or its beginning.
function summaries.read_last_line(text)
  local ending = string.gsub(string.sub(text, -4 * LAST), '%s+$', '')
  return summaries.truncate(string.match(ending, '([^\n]*)$'), LINE)
end

-- nil for a job that doesn't exist, and for a jid that names another key of a job.
function summaries.job(jid)
  local f = redis.pcall('HMGET', keys.job(jid), 'jid', 'klass', 'state', 'queue', 'worker',
    'priority', 'retries', 'remaining', 'expires',
    'tags', 'time', 'failure', 'data')
  if f.err or not f[1] then return nil end
  local failure = json.parse_object(f[12])
  local due = f[3] == 'scheduled' and f[4] and redis.call('ZSCORE', keys.scheduled(f[4]), jid)
  local data = f[13] or 'null'
  local ran = f[3] == 'complete' and summaries.describe_last_run(jid) or ''
  return '{"jid":' .. cjson.encode(jid) .. ',"klass":' .. cjson.encode(f[2] or '') .. ',"state":'
    .. cjson.encode(f[3] or '')
    .. ',"queue":' .. cjson.encode(f[4] or '') .. ',"worker":' .. cjson.encode(f[5] or '')
    .. ',"priority":' .. json.number(priority_score.negate(tonumber(f[6]) or 0)) .. ',"retries":'
      .. json.number(tonumber(f[7]) or constants.DEFAULT_RETRIES)
    .. ',"remaining":'
      .. json.number(math.floor(tonumber(f[8]) or tonumber(f[7]) or constants.DEFAULT_RETRIES))
    .. ',"expires":' .. json.number(tonumber(f[9]) or 0) .. ',"tags":' .. json.clean_list(f[10])
    .. ',"time":' .. json.number(tonumber(f[11]) or 0) .. ',"due":'
      .. json.number(tonumber(due or 0) or 0)
    .. ',"group":' .. cjson.encode(json.to_text(failure.group or failure.type))
    .. ',"message":' .. cjson.encode(summaries.shorten_message(json.to_text(failure.message)))
    .. ',"failed":' .. json.number(tonumber(failure.when) or 0)
    .. ',"failed_by":' .. cjson.encode(json.to_text(failure.worker))
    .. ',"data":' .. (#data <= DATA and cjson.encode(data) or 'null')
    .. ',"size":' .. #data .. ran .. '}'
end

-- The queue and worker of a complete job's last run and how long it took, as far as known.
function summaries.describe_last_run(jid)
  local run = history.read_last_run(jid)
  return ',"last_queue":' .. cjson.encode(run.queue or '') .. ',"last_worker":'
    .. cjson.encode(run.worker or '')
    .. (run.started and run.ended
      and ',"ran":' .. json.number(math.max(0, run.ended - run.started)) or '')
end

-- When the job at a rank of a group failed.
function summaries.read_failure_time(key, rank)
  local jid = redis.call('LINDEX', key, rank)
  local failure = jid and redis.call('HGET', keys.job(jid), 'failure')
  return failure and tonumber(string.match(failure, '"when":%s*(%-?[%d.]+)'))
end

-- Ranks double, so a million jobs have about twenty marks.
function summaries.group(group)
  local key, marks = keys.group(group), {}
  local total = redis.call('LLEN', key)
  local rank = 0
  while rank < total do
    local when = summaries.read_failure_time(key, rank)
    if when then
      marks[#marks + 1] = '[' .. json.number(rank + 1) .. ',' .. json.number(when) .. ']'
    end
    rank = rank == total - 1 and total or math.min(rank * 2 + 1, total - 1)
  end
  local latest = redis.call('LINDEX', key, 0)
  return '{"group":' .. cjson.encode(group) .. ',"total":' .. total .. ',"latest":'
    .. (latest and summaries.job(latest) or '{}')
    .. ',"marks":' .. json.list(marks) .. '}'
end

-- A worker's jobs, the first ones by soonest expiry.
function summaries.worker(worker, now, most)
  local held = keys.worker_jobs(worker)
  local jobs = {}
  for _, jid in ipairs(redis.call('ZRANGE', held, 0, most - 1)) do
    jobs[#jobs + 1] = summaries.job(jid)
  end
  return '{"name":' .. cjson.encode(worker) .. ',"seen":'
    .. json.number(tonumber(redis.call('ZSCORE', keys.workers(), worker) or 0))
    .. ',"jobs":' .. redis.call('ZCOUNT', held, now, '+inf') .. ',"stalled":'
      .. redis.call('ZCOUNT', held, '-inf', '(' .. json.number(now))
    .. ',' .. beats.describe(worker, now) .. ',"doing":' .. json.list(jobs) .. '}'
end
