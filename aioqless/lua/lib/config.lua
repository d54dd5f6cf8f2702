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
}

-- The options that commands read most; all of them are read in one call, at the first use of any.
local NUMBERS = {
  'grace-period', 'stats-history', 'histogram-history', 'jobs-history-count', 'jobs-history',
  'max-worker-age', 'max-job-history',
  'max-lost', 'archive',
}

-- One of NUMBERS; a value that isn't a number counts as unset, except for `archive`: `on`, or
-- anything else.
function config.number(option)
  if not call.config_numbers then
    call.config_numbers = presence.has('config') and config.read_numbers() or DEFAULTS
  end
  return call.config_numbers[option]
end

-- For how many seconds completed jobs are kept, how many of them, and for how many seconds a worker
-- without any call is known. Most calls find no options; then these need no table of defaults.
function config.jobs_history()
  return presence.has('config') and config.number('jobs-history') or constants.JOBS_HISTORY
end

function config.jobs_history_count()
  return presence.has('config') and config.number('jobs-history-count')
    or constants.JOBS_HISTORY_COUNT
end

function config.max_worker_age()
  return presence.has('config') and config.number('max-worker-age') or constants.MAX_WORKER_AGE
end

function config.read_numbers()
  local values = redis.call('HMGET', keys.config(), unpack(NUMBERS))
  local read = {}
  for i, option in ipairs(NUMBERS) do
    read[option] = tonumber(values[i]) or DEFAULTS[option] or values[i]
  end
  return read
end

function config.queue(queue)
  local known = call.queue_options or {}
  call.queue_options = known
  known[queue] = known[queue] or config.read_queue(queue)
  return known[queue]
end

-- Live clients write `<queue>-heartbeat`, the specification says `heartbeat-<queue>`.
function config.read_queue(queue)
  local values = redis.call('HMGET', keys.config(), queue .. '-heartbeat', 'heartbeat-' .. queue,
    'heartbeat', queue .. '-max-concurrency', queue .. '-rate-limit')
  return {
    heartbeat = tonumber(values[1]) or tonumber(values[2]) or tonumber(values[3])
      or DEFAULTS.heartbeat,
    max_concurrency = tonumber(values[4]) or 0,
    rate = values[5] and rates.parse(values[5]),
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

-- The rate limit of this queue, if any.
function config.rate(queue) return presence.has('config') and config.queue(queue).rate end

-- The name under which an option is stored: `heartbeat-<queue>` is an alias.
function config.stored_name(option)
  return (string.gsub(option, '^heartbeat%-(.+)$', '%1-heartbeat'))
end

function config.default(option) return DEFAULTS[option] end

function config.defaults() return DEFAULTS end

local ARCHIVE = {
  ['archive'] = 'off', ['archive-length'] = 1000000, ['archive-when-full'] = 'hold',
  ['archive-data'] = 0,
}

local STEPS = {['max-steps'] = 1000, ['max-steps-size'] = 16777216}

-- The maximum number and size of a job's steps.
function config.steps_limits()
  local values = presence.has('config')
    and redis.call('HMGET', keys.config(), 'max-steps', 'max-steps-size') or {}
  return tonumber(values[1]) or STEPS['max-steps'],
    tonumber(values[2]) or STEPS['max-steps-size']
end

-- The options of the archive.
function config.archive_settings()
  if not call.archive_settings then
    local values = redis.call('HMGET', keys.config(), 'archive-when-full', 'archive-length',
      'archive-data')
    call.archive_settings = {
      when_full = values[1] or ARCHIVE['archive-when-full'],
      length = tonumber(values[2]) or ARCHIVE['archive-length'],
      data = tonumber(values[3]) or ARCHIVE['archive-data'],
    }
  end
  return call.archive_settings
end

function config.archive_defaults() return ARCHIVE end

function config.steps_defaults() return STEPS end
