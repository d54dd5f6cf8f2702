-- config: options shared by all clients of the namespace.

local DEFAULTS = {
  ['application'] = 'qless',
  ['heartbeat'] = 60,
  ['grace-period'] = 10,
  ['stats-history'] = 30,
  ['histogram-history'] = 7,
  ['jobs-history-count'] = 50000,
  ['jobs-history'] = 604800,
  ['max-worker-age'] = 86400,
  ['max-job-history'] = 100,
}

local asked = {}

-- The option's own setting; nil when there is none.
function config.set_value(option)
  if asked[option] == nil then asked[option] = redis.call('HGET', keys.config(), option) end
  return asked[option] or nil
end

-- A number; what isn't one counts as not set.
function config.number(option) return tonumber(config.set_value(option)) or DEFAULTS[option] end

-- How long a lock of this queue lasts, in seconds.  Live clients write `<queue>-heartbeat`, the specification says `heartbeat-<queue>`.
function config.heartbeat(queue)
  local values = redis.call('HMGET', keys.config(), queue .. '-heartbeat', 'heartbeat-' .. queue, 'heartbeat')
  return tonumber(values[1]) or tonumber(values[2]) or tonumber(values[3]) or DEFAULTS.heartbeat
end

function config.max_concurrency(queue) return tonumber(config.set_value(queue .. '-max-concurrency')) or 0 end

-- The name under which an option is stored: `heartbeat-<queue>` is only another spelling.
function config.stored_name(option) return (string.gsub(option, '^heartbeat%-(.+)$', '%1-heartbeat')) end

function config.default(option) return DEFAULTS[option] end

function config.defaults() return DEFAULTS end
