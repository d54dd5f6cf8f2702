-- declarations: which contents of Redis recurring jobs were declared into, so that workers notice when Redis has lost them.

-- A worker is about to declare. Returns a generation: the id of the contents, of which `id` is a new one, and how often code declared.
function declarations.begin(id)
  redis.call('HSETNX', keys.declarations(), 'id', id)
  local count = redis.call('HINCRBY', keys.declarations(), 'count', 1)
  return redis.call('HGET', keys.declarations(), 'id') .. ' ' .. json.number(count)
end

-- Whether declarations of that generation may be lost: Redis was emptied since, or was restored from an older state.
function declarations.is_lost(generation)
  local f = redis.call('HMGET', keys.declarations(), 'id', 'count')
  local id, count = string.match(generation, '^(.+) (%d+)$')
  return not id or f[1] ~= id or (tonumber(f[2]) or 0) < tonumber(count)
end
