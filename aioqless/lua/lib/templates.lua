-- templates: recurring jobs as callers make and change them. (Their instances: recurring.lua.)

local DEFAULT_RETRIES = 5
local MOST_TAGS = 1000

-- Each option of an update, and how its value is checked.
local CHECKS = {
  priority = args.priority, retries = args.count, interval = args.interval, data = args.data, klass = args.name, queue = args.name,
  backlog = args.count,
}

-- A template that exists keeps its count only; its clock starts again.
function templates.on(recur)
  local key = keys.template(recur.jid)
  local former = redis.call('HGET', key, 'queue')
  if former then redis.call('ZREM', keys.recur(former), recur.jid) end
  redis.call('HSET', key, 'jid', recur.jid, 'klass', recur.klass, 'data', recur.data, 'priority', recur.priority or 0,
    'tags', json.texts(recur.tags or {}), 'state', 'recur', 'queue', recur.queue, 'type', 'interval', 'interval', recur.interval,
    'retries', recur.retries or DEFAULT_RETRIES, 'backlog', recur.backlog or 0)
  redis.call('HSETNX', key, 'count', 0)
  if recur.backlog then redis.call('HDEL', key, 'x-coalesce') else redis.call('HSET', key, 'x-coalesce', 1) end
  templates.set_next(recur.queue, recur.jid, recur.now + recur.offset)
  place.register(recur.queue, recur.now)
  return recur.jid
end

-- An idle worker that slept until some other time is told.
function templates.set_next(queue, jid, tick)
  redis.call('ZADD', keys.recur(queue), tick, jid)
  if redis.call('ZRANGE', keys.recur(queue), 0, 0)[1] == jid then events.ready(queue) end
end

function templates.off(jid)
  local queue = redis.call('HGET', keys.template(jid), 'queue')
  if queue then redis.call('ZREM', keys.recur(queue), jid) end
  redis.call('UNLINK', keys.template(jid))
  return '1'
end

function templates.existing(jid)
  local queue = redis.call('HGET', keys.template(jid), 'queue')
  if not queue then refusal.raise('NOJOB', 'there is no such recurring job', {jid = jid}) end
  return queue
end

-- JSON; nil for a template that doesn't exist.
function templates.view(jid)
  local f = redis.call('HMGET', keys.template(jid), 'jid', 'klass', 'queue', 'priority', 'interval', 'retries', 'count', 'data', 'tags',
    'backlog', 'x-coalesce')
  if not f[1] then return nil end
  local due = redis.call('ZSCORE', keys.recur(f[3] or ''), jid)
  return '{"jid":' .. cjson.encode(jid) .. ',"klass":' .. cjson.encode(f[2] or '') .. ',"state":"recur","queue":' .. cjson.encode(f[3] or '')
    .. ',"priority":' .. json.number(precedence.turned(tonumber(f[4]) or 0)) .. ',"interval":' .. json.number(tonumber(f[5]) or 0)
    .. ',"retries":' .. json.number(tonumber(f[6]) or 0) .. ',"count":' .. json.number(tonumber(f[7]) or 0)
    .. ',"data":' .. cjson.encode(f[8] or 'null') .. ',"tags":' .. json.stored_list(f[9])
    .. ',"backlog":' .. json.number(tonumber(f[10]) or 0) .. ',"coalesce":' .. tostring(f[11] ~= false and tonumber(f[10]) == 0)
    .. ',"next":' .. (due and json.number(tonumber(due)) or 'null') .. '}'
end

-- All pairs are checked before the first is written.
function templates.update(jid, changes)
  local queue = templates.existing(jid)
  if #changes % 2 == 1 then refusal.argument(changes[#changes], nil, 'has no value') end
  local values = {}
  for i = 1, #changes, 2 do
    local check = CHECKS[changes[i]]
    if not check then refusal.argument(changes[i], changes[i + 1], 'is not something of a recurring job that can be changed') end
    values[changes[i]] = check(changes[i], changes[i + 1])
  end
  local key = keys.template(jid)
  local due = tonumber(redis.call('ZSCORE', keys.recur(queue), jid))
  if values.interval and due then due = due + values.interval - (tonumber(redis.call('HGET', key, 'interval')) or values.interval) end
  for name, value in pairs(values) do redis.call('HSET', key, name, value) end
  if values.backlog then redis.call('HDEL', key, 'x-coalesce') end
  if due and (values.interval or values.queue) then
    redis.call('ZREM', keys.recur(queue), jid)
    templates.set_next(values.queue or queue, jid, due)
  end
  if values.queue then place.register(values.queue, args.time('now')) end
  return '1'
end

function templates.tag(jid, tags) return templates.retag(jid, tags, true) end

function templates.untag(jid, tags) return templates.retag(jid, tags, false) end

-- Only the template's own list: its instances get their tags when they are made.
function templates.retag(jid, tags, on)
  templates.existing(jid)
  local named, list, has = {}, {}, {}
  for _, tag in ipairs(tags) do named[tag] = true end
  for _, tag in ipairs(json.parsed_list(redis.call('HGET', keys.template(jid), 'tags'))) do
    has[tag] = true
    if on or not named[tag] then list[#list + 1] = tag end
  end
  for _, tag in ipairs(tags) do
    if on and not has[tag] then
      has[tag] = true
      list[#list + 1] = tag
    end
  end
  if on and #list > MOST_TAGS then refusal.argument('tags', list[#list], 'would be one tag too many: a recurring job has at most ' .. MOST_TAGS) end
  redis.call('HSET', keys.template(jid), 'tags', json.texts(list))
  return list
end
