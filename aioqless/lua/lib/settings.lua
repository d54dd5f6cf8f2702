-- settings: read and change the shared options, as callers do. (What commands go by: config.lua.)

-- JSON: the value, else the default, else nil.
function settings.get(option)
  local name = config.stored_name(option)
  local set = redis.call('HMGET', keys.config(), name, option)
  local value = set[1] or set[2] or config.default(name) or config.archive_defaults()[name]
    or config.steps_defaults()[name]
  return value and cjson.encode(value) or nil
end

function settings.get_all()
  local all = {}
  local groups = {config.defaults(), config.archive_defaults(), config.steps_defaults()}
  for _, defaults in ipairs(groups) do
    for option, value in pairs(defaults) do all[option] = value end
  end
  local set = redis.call('HGETALL', keys.config())
  for i = 1, #set, 2 do all[set[i]] = set[i + 1] end
  return cjson.encode(all)
end

-- Options that commands read as a number must be one.
function settings.set(option, value)
  local name = config.stored_name(option)
  local number = type(config.default(name)) == 'number' or string.find(name, '%-heartbeat$')
    or string.find(name, '%-max%-concurrency$')
    or string.find(name, '%-max%-length$')
  if number then args.number(option, value) end
  if string.find(name, '%-rate%-limit$') and not rates.parse(value) then
    errors.bad_argument(option, value,
      'must be number/seconds, at most ' .. constants.MAX_RATE_STARTS
        .. ': 100/60 for 100 per minute')
  end
  if name == 'archive' or name == 'archive-when-full' then
    local words = name == 'archive' and {'on', 'off'} or {'hold', 'count'}
    if value ~= words[1] and value ~= words[2] then
      errors.bad_argument(option, value, 'must be ' .. words[1] .. ' or ' .. words[2])
    end
  elseif name == 'archive-length' or name == 'archive-data' or config.steps_defaults()[name] then
    args.count(option, value)
  end
  if settings.is_retention_rule(name) then
    args.seconds(option, value)
    redis.call('SADD', keys.retention_rules(), name)
  end
  redis.call('HSET', keys.config(), name, value)
  events.publish({event = 'config_set', option = name, value = value})
end

function settings.unset(option)
  local name = config.stored_name(option)
  redis.call('HDEL', keys.config(), name, option)
  redis.call('SREM', keys.retention_rules(), name)
  events.publish({event = 'config_unset', option = name})
end

-- `<queue or klass>-jobs-history`, and `failed-history` alone or for one of these.
function settings.is_retention_rule(name)
  return name == 'failed-history' or string.find(name, '.%-jobs%-history$') ~= nil
    or string.find(name, '.%-failed%-history$') ~= nil
end
