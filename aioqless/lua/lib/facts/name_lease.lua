-- name_lease: the lease on a worker's stable name, so that two processes never have it at once.

local KEPT_FOR = 3600

function name_lease.raise_taken(worker, former, silent)
  local process = json.parse_object(former)
  errors.raise('NAMETAKEN', 'another worker has this name', {
    worker = worker, id = process.id, host = process.host, pid = process.pid,
    silent = math.floor(silent),
  })
end

-- A holder that was silent for long has lost its locks, too. `process` is JSON: {id, host, pid}.
-- Return whether another process held the name before.
function name_lease.claim(worker, process, now)
  local key, mine = keys.name_lease(worker), cjson.decode(process)
  local kept = redis.call('HMGET', key, 'process', 'renewed')
  local former = json.parse_object(kept[1])
  local another = former.id ~= nil and former.id ~= mine.id
  local silent = now - (tonumber(kept[2]) or 0)
  if another and silent <= constants.NAME_LEASE_TTL then
    name_lease.raise_taken(worker, kept[1], silent)
  end
  redis.call('HSET', key, 'process', process, 'renewed', now)
  redis.call('EXPIRE', key, KEPT_FOR)
  return another
end

-- Refuse if another process holds the name.
function name_lease.check(worker, id, now)
  local kept = redis.call('HMGET', keys.name_lease(worker), 'process', 'renewed')
  if kept[1] and json.parse_object(kept[1]).id ~= id then
    name_lease.raise_taken(worker, kept[1], now - (tonumber(kept[2]) or 0))
  end
end

function name_lease.release(worker, id)
  local key = keys.name_lease(worker)
  local holder = json.parse_object(redis.call('HGET', key, 'process'))
  if holder.id == id then redis.call('UNLINK', key) end
end
