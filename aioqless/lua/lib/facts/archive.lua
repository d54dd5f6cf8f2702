-- archive: append the end of each stage of a job to a stream, if the option `archive` is `on`.
-- An entry holds all that is known of the stage, since the job may be gone when it is read; fields
-- without a value are left out. The option is read together with other numbers that most calls
-- need, so it costs nothing when the archive is off.

function archive.is_on() return config.common('archive') == 'on' end

local MOST_RUNS = 100
local LONGEST_MESSAGE = 200
local IN_LINE = {waiting = true, scheduled = true, depends = true}

-- Return what a field says of a run, which it names first; nil if it names another one.
function archive.read_of_run(field, run)
  return field and run and string.sub(field, 1, #run + 1) == run .. ' '
    and string.sub(field, #run + 2) or nil
end

-- Append the end of a stage. `job` is its record before the change; its hash still exists. `more`
-- has what the record doesn't say: to, state, group, message, actor; if another client ended it
-- also queue, worker, put, popped, history.
function archive.append(job, what, ended, more)
  local key = keys.job(job.jid)
  local f = redis.call('HMGET', key, 'klass', 'priority', 'tags', 'remaining', 'x-put',
    'spawned_from_jid', 'x-after', 'x-runs', 'x-constraints', 'x-expiry', 'x-due', 'x-version')
  local was, fence, runs = job.state, job.fence, f[8]
  local popped = more.popped or (was == 'running' and job.time) or nil
  local put = more.put or (was == 'running' and tonumber(f[5])) or (IN_LINE[was] and job.time)
    or nil
  -- If a peer began this run, the fence and the put time are those of an earlier run.
  if popped and runs and fence and string.find(runs, '"fence":"' .. fence .. '"', 1, true) then
    put, fence = nil, nil
  end
  local e = {
    'v', '1', 'what', what, 'jid', job.jid, 'klass', f[1] or '', 'queue',
    more.queue or job.queue or '', 'ended', string.format('%.6f', ended),
    'priority', f[2] == '0' and '0' or json.number(priority_score.negate(tonumber(f[2]) or 0)),
    'retries', job.retries or constants.DEFAULT_RETRIES, 'remaining',
    f[4] or job.retries or constants.DEFAULT_RETRIES,
  }
  local n = #e
  if more.state then e[n + 1], e[n + 2], n = 'state', more.state, n + 2 end
  if put then e[n + 1], e[n + 2], n = 'put', string.format('%.6f', put), n + 2 end
  if popped then
    e[n + 1], e[n + 2], e[n + 3], e[n + 4], n = 'popped', string.format('%.6f', popped), 'worker',
      more.worker or job.worker, n + 4
  end
  if not more.history then e[n + 1], e[n + 2], n = 'was', was, n + 2 end
  if popped and fence and not more.history then e[n + 1], e[n + 2], n = 'fence', fence, n + 2 end
  local tags = f[3] and f[3] ~= '[]' and json.clean_list(f[3]) or '[]'
  if tags ~= '[]' then e[n + 1], e[n + 2], n = 'tags', tags, n + 2 end
  if f[6] then e[n + 1], e[n + 2], n = 'spawned_from', f[6], n + 2 end
  if f[7] then e[n + 1], e[n + 2], n = 'depends', f[7], n + 2 end
  local own = f[9] and job_constraints.read(f[9]) or {}
  local set = members.find_name(f[9])
  if set then e[n + 1], e[n + 2], n = 'job_set', set, n + 2 end
  if own.fair then e[n + 1], e[n + 2], n = 'tenant', own.fair, n + 2 end
  if f[10] then e[n + 1], e[n + 2], n = 'expires', f[10], n + 2 end
  local due = put and f[11]
    and archive.read_of_run(f[11], was == 'running' and f[5] or job.time_text)
  if due then e[n + 1], e[n + 2], n = 'due', due, n + 2 end
  local version = popped and not more.history and f[12]
    and archive.read_of_run(f[12], fence)
  if version then e[n + 1], e[n + 2], n = 'version', version, n + 2 end
  if more.actor then e[n + 1], e[n + 2], n = 'actor', more.actor, n + 2 end
  if more.to then e[n + 1], e[n + 2], n = 'to', more.to, n + 2 end
  if more.group then
    e[n + 1], e[n + 2], e[n + 3], e[n + 4], n = 'group', more.group, 'message', more.message or '',
      n + 4
  end
  if more.history then
    e[n + 1], e[n + 2], e[n + 3], e[n + 4], n = 'swept', '1', 'history', more.history, n + 4
  end
  if runs then
    e[n + 1], e[n + 2], n = 'runs', runs, n + 2
    redis.call('HDEL', key, 'x-runs')
  end
  local size = config.common('archive-data') > 0 and redis.call('HSTRLEN', key, 'data') or 0
  if size > config.common('archive-data') then
    e[n + 1], e[n + 2] = 'data_size', size
  elseif size > 0 then
    e[n + 1], e[n + 2] = 'data', redis.call('HGET', key, 'data')
  end
  if config.common('archive-when-full') == 'count' then
    redis.call('XADD', keys.archive(), 'MAXLEN', '~', config.common('archive-length'), '*',
      unpack(e))
  else
    redis.call('XADD', keys.archive(), '*', unpack(e))
  end
end

-- Record the end of a run that doesn't end the stage. It is kept with the job until the stage ends:
-- the first run and the latest ones.
function archive.append_run(job, now, how, group, message)
  local f = redis.call('HMGET', keys.job(job.jid), 'x-runs', 'x-put', 'x-due', 'x-version')
  local earlier = f[1] or '[]'
  local run = {
    ended = string.format('%.6f', now), popped = job.time and string.format('%.6f', job.time),
    how = how, worker = job.worker,
  }
  if job.fence and not string.find(earlier, '"fence":"' .. job.fence .. '"', 1, true) then
    run.fence, run.put = job.fence, job.put and string.format('%.6f', job.put)
    run.due, run.version = archive.read_of_run(f[3], f[2]), archive.read_of_run(f[4], job.fence)
  end
  if group and message then
    run.group, run.message = group, string.sub(message, 1, LONGEST_MESSAGE)
  end
  local list = json.parse_list(earlier)
  if #list >= MOST_RUNS then table.remove(list, 2) end
  list[#list + 1] = run
  record.set_fields(job.jid, 'x-runs', cjson.encode(list))
end
