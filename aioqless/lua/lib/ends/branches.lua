-- branches: the jobs that a failure puts: the failed job's own (the option on_failure), and its
-- handler's, which workers declare by klass. Each is a JSON object of strings: its queue, klass and
-- data, and options of put.

local PERIOD = 40      -- seconds between two sweeps
local TOLERANCE = 600  -- seconds by which the clock of another client may be behind
local PAGE = 100
local MOST_LOOKS = 1000

-- Parse a branch, and refuse what could not be put when the job fails.
function branches.parse(text)
  local job = json.parse_object(text)
  for name, value in pairs(job) do
    if type(value) ~= 'string' then
      errors.bad_argument('on_failure', text, 'has a member that is not a string: ' .. name)
    end
  end
  local put = {
    queue = args.name('queue', job.queue), klass = args.name('klass', job.klass),
    data = args.data('data', job.data), delay = args.seconds('delay', job.delay or '0'),
  }
  local options = {
    priority = job.priority and args.priority('priority', job.priority),
    tags = job.tags and args.tags('tags', job.tags),
    retries = job.retries and args.count('retries', job.retries),
    expires_in = job.expires_in and args.seconds('expires_in', job.expires_in),
    context = job.context and args.object('context', job.context),
    constraints = job.constraints and args.object('constraints', job.constraints),
  }
  if job.constraints and job_constraints.parse(job.constraints).if_exists then
    errors.bad_argument('on_failure', text, 'must not have if_exists')
  end
  return put, options
end

-- Set the branch of a job.
function branches.set(jid, text, now)
  record.set_fields(jid, 'x-on-failure', text)
  branches.note_use(now)
end

-- Note that failures matter, also those of other clients: from now on they are looked for.
function branches.note_use(now)
  redis.call('HSETNX', keys.on_failure(), '', string.format('%.6f', now))
end

-- Declare the branch of all jobs of a klass; it counts for failures from the first declaration on.
function branches.declare(klass, text, now)
  local since = string.match(redis.call('HGET', keys.on_failure(), klass) or '', '^%S+')
  redis.call('HSET', keys.on_failure(), klass, (since or string.format('%.6f', now)) .. ' ' .. text)
  branches.note_use(now)
end

-- React to a failure. `f` has the fields x-cascade, x-on-failure and klass of the failed job,
-- `declared` is what its klass declares; at least one of them says something.
function branches.react(job, f, declared, group, message, now)
  local jid, key = job.jid, keys.job(job.jid)
  local number = (tonumber(string.match(redis.call('HGET', key, 'x-failures') or '', '^%d+')) or 0)
    + 1
  record.set_fields(jid, 'x-failures', string.format('%d ', number) .. (job.time_text or ''))
  if f[1] then cascade.note_failure(jid, f[1]) end
  if not (f[2] or declared) or group == job.queue .. '-dependency-failed'
    or redis.call('HEXISTS', key, 'x-cause') == 1 then
    return
  end
  local cause = branches.encode_failure(jid, f[3], group, message)
  call.branch_context = redis.call('HGET', key, 'x-context') or nil
  if f[2] then branches.put(f[2], jid .. '-failure-', number, cause, now) end
  if declared then
    branches.put(string.match(declared, '^%S+ (.*)$'), jid .. '-handler-failure-', number, cause,
      now + 0.000001)
  end
end

-- A failure as others get it, with the failed job's data.
function branches.encode_failure(jid, klass, group, message)
  return '{"jid":' .. cjson.encode(jid) .. ',"klass":' .. cjson.encode(klass or '')
    .. ',"group":' .. cjson.encode(group) .. ',"message":' .. cjson.encode(message) .. ',"data":'
    .. cjson.encode(redis.call('HGET', keys.job(jid), 'data') or 'null') .. '}'
end

-- Put a branch, whatever the length of its queue, by default with the context of the failed job. If
-- its unique key is taken, nothing is put. A number may be in use if the failed job was deleted and
-- put again.
function branches.put(text, prefix, number, cause, now)
  local put, options = branches.parse(text)
  while redis.call('EXISTS', keys.job(string.format('%s%d', prefix, number))) == 1 do
    number = number * 2
  end
  put.jid, put.now = string.format('%s%d', prefix, number), now
  options.context = options.context or call.branch_context
  if enqueue.write(put, options) == put.jid then record.set_fields(put.jid, 'x-cause', cause) end
end

-- React to failures that other clients stored, a bounded number per call: of each group those since
-- the sweep before. Return the seconds until the next call; 0: this sweep continues.
function branches.sweep(now)
  local used = redis.call('HGET', keys.on_failure(), '')
  if not used then return PERIOD end
  local f = redis.call('HMGET', keys.failure_sweep(), 'began', 'since', 'cursor', 'groups',
    'offset')
  local began, since, cursor = tonumber(f[1]), tonumber(f[2]), f[3] or 'ended'
  local groups, offset = json.parse_texts(f[4]), tonumber(f[5]) or 0
  if cursor == 'ended' then
    if began and math.abs(now - began) < PERIOD then return began + PERIOD - now end
    since = math.max(tonumber(used), (began or now) - TOLERANCE)
    began, cursor, groups, offset = now, '0', nil, 0
  end
  local left = MOST_LOOKS
  repeat
    if not groups or #groups == 0 and cursor ~= '0' then
      local step = redis.call('SSCAN', keys.failures(), cursor, 'COUNT', PAGE)
      cursor, groups, offset, left = step[1], step[2], 0, left - 1
    elseif #groups > 0 then
      local looked, recent = branches.sweep_page(groups[1], offset, since, now)
      left, offset = left - 1 - looked, offset + looked
      if looked < PAGE or not recent then
        table.remove(groups, 1)
        offset = 0
      end
    end
    if #groups == 0 and cursor == '0' then cursor = 'ended' end
  until left <= 0 or cursor == 'ended'
  redis.call('HSET', keys.failure_sweep(), 'began', string.format('%.6f', began), 'since',
    string.format('%.6f', since), 'cursor', cursor, 'groups', json.texts(groups), 'offset', offset)
  cascade.run_deferred(now)
  return cursor == 'ended' and PERIOD or 0
end

-- A page of a group, newest first. Return how many jobs it has, and whether one failed since then.
function branches.sweep_page(group, offset, since, now)
  local jids = redis.call('LRANGE', keys.group(group), offset, offset + PAGE - 1)
  local recent = false
  for _, jid in ipairs(jids) do
    local f = redis.call('HMGET', keys.job(jid), 'x-cascade', 'x-on-failure', 'klass', 'failure',
      'state', 'x-failures', 'time', 'x-follow-up', 'x-constraints')
    local when = tonumber(string.match(f[4] or '', '"when":%s*(%-?[%d.]+)')) or 0
    if when >= math.floor(since) then
      recent = true
      local known = string.match(f[6] or '', '^%d+ (.*)$')
      if f[5] == 'failed' and known ~= f[7] then branches.catch_up(jid, f, group, when, now) end
    end
  end
  return #jids, recent
end

-- React to a failure that no script of ours stored, or that mattered to nothing at that time.
function branches.catch_up(jid, f, group, when, now)
  if f[8] then
    local own = job_constraints.read(f[9])
    if own.debounce then debounce.hand_over(jid, own.unique, now) end
  end
  local declared = redis.call('HGET', keys.on_failure(), f[3] or '')
  if declared and when <= tonumber(string.match(declared, '^%S+')) then declared = nil end
  if not (f[1] or f[2] or declared) then return end
  branches.react(record.read(jid), f, declared, group,
    json.to_text(json.parse_object(f[4]).message), now)
end
