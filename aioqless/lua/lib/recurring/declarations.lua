-- declarations: detect whether Redis has lost the recurring jobs that code declared.

-- A worker is about to declare. Return a generation: the id of Redis' contents (`id` if they have
-- none yet), and how often code has declared.
function declarations.begin(id)
  redis.call('HSETNX', keys.declarations(), 'id', id)
  local count = redis.call('HINCRBY', keys.declarations(), 'count', 1)
  return redis.call('HGET', keys.declarations(), 'id') .. ' ' .. json.number(count)
end

-- Whether declarations of a generation may be lost: Redis was flushed since, or restored from an
-- older state.
function declarations.is_lost(generation)
  local f = redis.call('HMGET', keys.declarations(), 'id', 'count')
  local id, count = string.match(generation, '^(.+) (%d+)$')
  return not id or f[1] ~= id or (tonumber(f[2]) or 0) < tonumber(count)
end
