-- limit_usage: how full limits by key are, found by jobs of a queue.

local SCHEDULED, RUNNING = 200, 100  -- jobs whose limits are read
local KEYS = 20                      -- that are described

function limit_usage.list(queue, now)
  local found, jobs, read = {}, 0, 0
  for _, each in ipairs({{keys.scheduled(queue), SCHEDULED}, {keys.locks(queue), RUNNING}}) do
    jobs = jobs + redis.call('ZCARD', each[1])
    for _, jid in ipairs(redis.call('ZRANGE', each[1], 0, each[2] - 1)) do
      limit_usage.add(found, jid)
      read = read + 1
    end
  end
  local total, described = #found, {}
  table.sort(found, limit_usage.is_fuller)
  for i = 1, math.min(KEYS, total) do described[i] = limit_usage.describe(found[i], now) end
  return '{"keys":' .. json.list(described) .. ',"total":' .. total .. ',"read":' .. read
    .. ',"jobs":' .. jobs .. '}'
end

-- Add the limits of a job that aren't known yet, to a list that is also by key.
function limit_usage.add(found, jid)
  local text = redis.call('HGET', keys.job(jid), 'x-constraints')
  for _, limit in ipairs(text and job_constraints.read(text).limits or {}) do
    if not found[':' .. limit.key] then
      found[':' .. limit.key] = true
      found[#found + 1] = {
        limit = limit, jid = jid, held = redis.call('ZCARD', keys.held_back(limit.key)),
        running = redis.call('ZCARD', keys.limit_running(limit.key)),
      }
    end
  end
end

function limit_usage.is_fuller(one, other)
  if one.held ~= other.held then return one.held > other.held end
  return one.running > other.running
end

function limit_usage.describe(each, now)
  local limit = each.limit
  local room = limit.rate and rates.find_room('k:' .. limit.key, limit, limit.cost or 1, now)
  local paused = limits.read_pause(limit.key, now)
  return '{"key":' .. cjson.encode(limit.key) .. ',"jid":' .. cjson.encode(each.jid)
    .. ',"held":' .. each.held .. ',"running":' .. each.running
    .. (limit.limit and ',"limit":' .. json.number(limit.limit) or '')
    .. (limit.rate and ',"rate":' .. cjson.encode(limit.rate) .. ',"used":'
      .. json.number(rates.read_used('k:' .. limit.key, limit, now)) or '')
    .. (room and ',"until":' .. json.number(room) or '')
    .. (paused and ',"paused_until":' .. json.number(paused) or '') .. '}'
end
