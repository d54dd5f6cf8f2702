-- config: options shared by all clients of the namespace.

local DEFAULTS = {
  ['application'] = 'qless',
  ['heartbeat'] = constants.HEARTBEAT,
  ['grace-period'] = 10,
  ['stats-history'] = 30,
  ['histogram-history'] = 7,
  ['jobs-history-count'] = constants.JOBS_HISTORY_COUNT,
  ['jobs-history'] = constants.JOBS_HISTORY,
  ['max-worker-age'] = constants.MAX_WORKER_AGE,
  ['max-job-history'] = constants.JOB_HISTORY,
  ['max-lost'] = 0,
  ['worker-timeout'] = constants.WORKER_TIMEOUT,
  ['archive'] = 'off',
  ['archive-length'] = 1000000,
  ['archive-when-full'] = 'hold',
  ['archive-data'] = 0,
}

-- The options that commands read most; all of them are read in one call, at the first use of any.
local COMMON = {
  'grace-period', 'stats-history', 'histogram-history', 'jobs-history-count', 'jobs-history',
  'max-worker-age', 'max-job-history', 'max-lost', 'archive', 'archive-length',
  'archive-when-full', 'archive-data',
}

-- What this call has read: all of COMMON, and by `queue ` and its name the options of a queue.
function config.known()
  call.options = call.options or config.read_common()
  return call.options
end

-- One of COMMON; what should be a number and isn't counts as unset.
function config.common(option)
  if presence.has('config') then return config.known()[option] end
  return DEFAULTS[option]
end

-- For how many seconds completed jobs are kept, how many of them, and for how many seconds a worker
-- without any call is known. Most calls find no options; then these need no table of defaults.
function config.jobs_history()
  return presence.has('config') and config.common('jobs-history') or constants.JOBS_HISTORY
end

function config.jobs_history_count()
  return presence.has('config') and config.common('jobs-history-count')
    or constants.JOBS_HISTORY_COUNT
end

function config.max_worker_age()
  return presence.has('config') and config.common('max-worker-age') or constants.MAX_WORKER_AGE
end

function config.read_common()
  local values = redis.call('HMGET', keys.config(), unpack(COMMON))
  local read = {}
  for i, option in ipairs(COMMON) do
    local default = DEFAULTS[option]
    read[option] = type(default) == 'string' and values[i] or tonumber(values[i]) or default
  end
  return read
end

function config.queue(queue)
  local known, name = config.known(), 'queue ' .. queue
  known[name] = known[name] or config.read_queue(queue)
  return known[name]
end

-- Live clients write `<queue>-heartbeat`, the specification says `heartbeat-<queue>`.
function config.read_queue(queue)
  local values = redis.call('HMGET', keys.config(), queue .. '-heartbeat', 'heartbeat-' .. queue,
    'heartbeat', queue .. '-max-concurrency', queue .. '-rate-limit', queue .. '-max-length')
  return {
    heartbeat = tonumber(values[1]) or tonumber(values[2]) or tonumber(values[3])
      or DEFAULTS.heartbeat,
    max_concurrency = tonumber(values[4]) or 0,
    rate = values[5] and config.parse_rate(values[5]),
    max_length = tonumber(values[6]) or 0,
  }
end

-- For how long a lock of this queue lasts, in seconds.
function config.heartbeat(queue)
  return presence.has('config') and config.queue(queue).heartbeat or constants.HEARTBEAT
end

-- The maximum number of running jobs of this queue; 0: no limit.
function config.max_concurrency(queue)
  return presence.has('config') and config.queue(queue).max_concurrency or 0
end

-- The maximum number of jobs in this queue; 0: no limit.
function config.max_length(queue)
  return presence.has('config') and config.queue(queue).max_length or 0
end

-- The rate limit of this queue, if any.
function config.rate(queue) return presence.has('config') and config.queue(queue).rate end

-- The name under which an option is stored: `heartbeat-<queue>` is an alias.
function config.stored_name(option)
  return (string.gsub(option, '^heartbeat%-(.+)$', '%1-heartbeat'))
end

local STEPS = {['max-steps'] = 1000, ['max-steps-size'] = 16777216}

-- The maximum number and size of a job's steps.
function config.steps_limits()
  local values = presence.has('config')
    and redis.call('HMGET', keys.config(), 'max-steps', 'max-steps-size') or {}
  return tonumber(values[1]) or STEPS['max-steps'],
    tonumber(values[2]) or STEPS['max-steps-size']
end

-- JSON: the value, else the default, else nil.
function config.get(option)
  local name = config.stored_name(option)
  local set = redis.call('HMGET', keys.config(), name, option)
  local value = set[1] or set[2] or DEFAULTS[name] or STEPS[name]
  return value and cjson.encode(value) or nil
end

function config.get_all()
  local all = {}
  for _, defaults in ipairs({DEFAULTS, STEPS}) do
    for option, value in pairs(defaults) do all[option] = value end
  end
  local set = redis.call('HGETALL', keys.config())
  for i = 1, #set, 2 do all[set[i]] = set[i + 1] end
  return cjson.encode(all)
end

-- Options that commands read as a number must be one.
function config.set(option, value)
  local name = config.stored_name(option)
  local number = type(DEFAULTS[name]) == 'number' or string.find(name, '%-heartbeat$')
    or string.find(name, '%-max%-concurrency$') or string.find(name, '%-max%-length$')
  if number then args.number(option, value) end
  if name == 'worker-timeout' and tonumber(value) < constants.WORKER_TIMEOUT then
    errors.bad_argument(option, value, 'must be at least ' .. constants.WORKER_TIMEOUT)
  end
  if string.find(name, '%-rate%-limit$') and not config.parse_rate(value) then
    errors.bad_argument(option, value,
      'must be number/seconds, at most ' .. constants.MAX_RATE_STARTS
        .. ': 100/60 for 100 per minute')
  end
  if name == 'archive' or name == 'archive-when-full' then
    local words = name == 'archive' and {'on', 'off'} or {'hold', 'count'}
    if value ~= words[1] and value ~= words[2] then
      errors.bad_argument(option, value, 'must be ' .. words[1] .. ' or ' .. words[2])
    end
  elseif name == 'archive-length' or name == 'archive-data' or STEPS[name] then
    args.count(option, value)
  end
  if config.is_retention_rule(name) then
    args.seconds(option, value)
    redis.call('SADD', keys.retention_rules(), name)
  end
  redis.call('HSET', keys.config(), name, value)
  events.publish({event = 'config_set', option = name, value = value})
end

function config.unset(option)
  local name = config.stored_name(option)
  redis.call('HDEL', keys.config(), name, option)
  redis.call('SREM', keys.retention_rules(), name)
  events.publish({event = 'config_unset', option = name})
end

-- `<queue or klass>-jobs-history`, and `failed-history` alone or for one of these.
function config.is_retention_rule(name)
  return name == 'failed-history' or string.find(name, '.%-jobs%-history$') ~= nil
    or string.find(name, '.%-failed%-history$') ~= nil
end

-- Parse a queue's option: `100/60` for 100 per minute. nil if invalid.
function config.parse_rate(text)
  local many, seconds = string.match(text, '^%s*(%d+)%s*/%s*([%d%.]+)%s*$')
  many, seconds = tonumber(many), tonumber(seconds)
  return many and seconds and many >= 1 and many <= constants.MAX_RATE_STARTS and seconds > 0
    and seconds <= 1e10
    and {many, seconds} or nil
end
