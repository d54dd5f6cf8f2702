-- waits: why a scheduled job isn't started yet: read only, for those who look.

local MOST = 10

-- As JSON: the key's concurrency limit with jobs that run, or its rate; and when the job is looked at again. nil for one that isn't held back.
-- @seldom
function waits.reason(jid, queue, text)
  local own = json.parsed_object(text)
  if type(own.key) ~= 'string' or not redis.call('ZSCORE', keys.held_back(own.key), jid) then return nil end
  local due = redis.call('ZSCORE', keys.scheduled(queue), jid)
  local said = '{"key":' .. cjson.encode(own.key) .. ',"until":' .. json.number(tonumber(due or 0) or 0)
  if type(own.limit) == 'number' and redis.call('ZCARD', keys.holding(own.key)) >= own.limit then
    return said .. ',"limit":' .. json.number(own.limit) .. ',"running":' .. json.texts(redis.call('ZRANGE', keys.holding(own.key), 0, MOST - 1)) .. '}'
  end
  if type(own.rate) ~= 'table' then return said .. '}' end
  return said .. ',"rate":' .. cjson.encode(own.rate) .. '}'
end
