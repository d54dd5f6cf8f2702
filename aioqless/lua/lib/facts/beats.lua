-- beats: which workers live. Ours send a beat every few seconds. One that has sent none for
-- `worker-timeout` is gone: its jobs are put back (lib/agenda/lost_workers.lua). That is found by
-- another worker whose own beats all arrived meanwhile, so that a stall of Redis, or an outage for
-- all, makes no worker gone.

-- Seconds by which Redis may make a beat late. A worker whose own beat was later than that finds no
-- other gone until its beats have arrived for `worker-timeout` again.
local MARGIN = 7
local MOST_FOUND = 20
local HISTORY = 480  -- minutes for which it is kept what a worker used

-- For how many seconds a worker may send no beat. It sends one every 5: less would be too few.
function beats.timeout()
  local set = presence.has('config') and redis.call('HGET', keys.config(), 'worker-timeout')
  return math.max(set and tonumber(set) or 0, constants.WORKER_TIMEOUT)
end

-- Record the beat of a worker. Return since when its beats have arrived without a gap; nil if a
-- former process of this name is gone, but its jobs are not put back yet: then nothing is recorded,
-- and `found` gets what find_gone would return of it.
function beats.record(worker, process, queues, after, now, found)
  local facts = json.parse_object(process)
  local key, id = keys.beat(worker), facts.id
  local kept = redis.call('HMGET', key, 'process', 'at', 'since', 'gone')
  local former = json.parse_object(kept[1])
  local silent = now - (tonumber(kept[2]) or 0)
  local is_same = former.id == id
  if former.id and not is_same and kept[4] ~= 'released' then
    if kept[4] then
      notes.find_stored(now)
    elseif after and string.find(after, former.id, 1, true) or silent > beats.timeout() then
      found[1] = beats.note_gone(worker)
    else
      errors.raise('NAMETAKEN', 'another worker has this name', {
        worker = worker, id = former.id, host = former.host, pid = former.pid,
        silent = math.floor(silent),
      })
    end
    return nil
  end
  local is_late = silent > beats.timeout() - MARGIN
  local since = is_same and not kept[4] and not is_late and kept[3] or json.number(now)
  redis.call('HSET', key, 'process', process, 'at', json.number(now), 'since', since,
    'queues', json.texts(queues))
  if kept[4] then redis.call('HDEL', key, 'gone') end
  if not is_same or math.floor(now / 60) ~= math.floor((tonumber(kept[2]) or 0) / 60) then
    beats.note_minute(worker, facts, now)
  end
  redis.call('ZADD', keys.beats(), now, worker)
  redis.call('ZADD', keys.workers(), now, worker)
  return tonumber(since)
end

-- Note what a worker uses, and its version: with its first beat and once a minute. Its key expires
-- a minute later than if each beat said so.
function beats.note_minute(worker, facts, now)
  redis.call('EXPIRE', keys.beat(worker), string.format('%.0f', config.max_worker_age() + 60))
  if type(facts.version) == 'string' then marks.note_version(facts.version, now) end
  local memory, busy, minute = tonumber(facts.memory), tonumber(facts.busy), math.floor(now / 60)
  if not (memory and busy) then return end
  local key = keys.beat(worker)
  local lines = redis.call('HGET', key, 'history') or ''
  while (tonumber(string.match(lines, '^%d+')) or minute) <= minute - HISTORY do
    lines = string.match(lines, '\n(.*)$') or ''
  end
  lines = string.gsub(lines, '\n?' .. minute .. ' [^\n]*$', '')
  if lines ~= '' then lines = lines .. '\n' end
  redis.call('HSET', key, 'history', lines .. string.format('%d %d %d', minute, memory, busy))
end

-- Whether a process of a worker has sent counts of this number before; else note that it has. It
-- sends the next ones when these are answered, so all numbers up to the latest were added.
function beats.is_repeated(worker, process, number)
  local key, id = keys.beat(worker), json.to_text(json.parse_object(process).id)
  local latest, by = string.match(redis.call('HGET', key, 'counts') or '', '^(%d+) (.*)$')
  if by == id and tonumber(latest) >= number then return true end
  redis.call('HSET', key, 'counts', string.format('%d ', number) .. id)
  return false
end

-- Find workers that are gone, as one can tell whose beats have arrived since `since`. Append JSON
-- of each to `found`: {worker, jobs}, how many jobs it has.
function beats.find_gone(since, now, found)
  local timeout = beats.timeout()
  if now - since < timeout then return end
  local silent = redis.call('ZRANGE', keys.beats(), '-inf', '(' .. json.number(now - timeout),
    'BYSCORE', 'LIMIT', 0, MOST_FOUND)
  for i, worker in ipairs(silent) do found[i] = beats.note_gone(worker) end
end

function beats.note_gone(worker)
  redis.call('ZREM', keys.beats(), worker)
  redis.call('HSET', keys.beat(worker), 'gone', 'noted')
  notes.store('worker gone', worker)
  return '{"worker":' .. cjson.encode(worker) .. ',"jobs":'
    .. redis.call('ZCARD', keys.worker_jobs(worker)) .. '}'
end

-- Whether the jobs of a worker must be put back: it may have sent a beat since.
function beats.is_noted(worker) return redis.call('HGET', keys.beat(worker), 'gone') == 'noted' end

function beats.note_released(worker) redis.call('HSET', keys.beat(worker), 'gone', 'released') end

-- Forget a worker; `id`: only if its latest process was this one.
function beats.forget(worker, id)
  local latest = id and json.parse_object(redis.call('HGET', keys.beat(worker), 'process')).id
  if id and latest and latest ~= id then return end
  redis.call('ZREM', keys.workers(), worker)
  redis.call('ZREM', keys.beats(), worker)
  redis.call('UNLINK', keys.beat(worker))
end

-- JSON: whether a worker lives, and what it serves. Of one that sends no beats, such as a person or
-- a worker of another client, neither is known.
function beats.describe(worker, now)
  local f = redis.call('HMGET', keys.beat(worker), 'at', 'gone', 'queues')
  if not f[1] then return '"alive":null,"queues":null' end
  local alive = not f[2] and now - tonumber(f[1]) <= beats.timeout()
  return '"alive":' .. tostring(alive) .. ',"queues":' .. f[3]
end
