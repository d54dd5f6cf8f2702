-- view: a job as callers see it, in JSON.

local MOST_EVENTS = 10000
local MOST_LINKS = 1000
local MOST_NESTED = 500
-- An event with one more member, a name of plain characters: a queue or a worker.
local PLAIN_EVENT = '^%[([1-9]%d*),"(%l+)",{"(%l+)":"([%w_.:-]+)"},0(%.%d+)%]$'

-- nil for a job that doesn't exist, or that the worker, if there is one, doesn't hold. It is one
-- expression, since Redis' Lua hashes every byte of each string that a script makes, and data may
-- be long. `jobs`: how many the reply has. The more, the fewer events (the latest ones),
-- dependencies and dependents it shows of each.
function view.encode(jid, jobs, worker)
  local f = redis.pcall('HMGET', keys.job(jid), 'jid', 'klass', 'state', 'queue', 'worker',
    'priority', 'retries', 'remaining',
    'expires', 'data', 'tags', 'failure', 'spawned_from_jid', 'history', 'x-fence', 'x-context',
      'x-progress', 'x-expiry', 'x-constraints', 'x-cause', 'x-on-failure', 'x-failures',
      'x-after')
  if f.err then record.check_type(jid) end
  if not f[1] or worker and (f[3] ~= 'running' or f[5] ~= worker) then return nil end
  local tracked = presence.has('tracked') and redis.call('ZSCORE', keys.tracked(), jid)
  local linked = redis.call('EXISTS', keys.dependencies(jid), keys.dependents(jid)) > 0
  local retries = tonumber(f[7]) or constants.DEFAULT_RETRIES
  local held_back = f[3] == 'scheduled'
    and (f[19] and held_jobs.explain(jid, f[4] or '', f[19])
      or waits.explain(jid, f[4] or '', f[15]))
  return '{"jid":' .. cjson.encode(jid)
    .. ',"klass":' .. cjson.encode(f[2] or '')
    .. ',"state":' .. cjson.encode(f[3] or '')
    .. ',"queue":' .. cjson.encode(f[4] or '')
    .. ',"worker":' .. cjson.encode(f[5] or '')
    .. ',"tracked":' .. (tracked and 'true' or 'false')
    .. ',"priority":' .. json.number(priority_score.negate(tonumber(f[6]) or 0))
    .. ',"retries":' .. json.number(retries)
    .. ',"remaining":' .. json.number(math.floor(tonumber(f[8]) or retries))
    .. ',"expires":' .. json.number(tonumber(f[9]) or 0)
    .. ',"data":' .. cjson.encode(f[10] or 'null')
    .. ',"tags":' .. (f[11] == '[]' and '[]' or json.clean_list(f[11]))
    .. ',"failure":' .. (f[12] and view.encode_failure(f[12]) or '{}')
    .. ',"spawned_from_jid":' .. cjson.encode(f[13])
    .. ',"fence":' .. json.number(tonumber(f[15]) or 0)
    .. (linked and view.encode_set('dependencies', keys.dependencies(jid), jobs)
      .. view.encode_set('dependents', keys.dependents(jid), jobs)
      or ',"dependencies":[],"dependencies_total":0,"dependents":[],"dependents_total":0')
    .. view.encode_history(jid, f[14], jobs)
    .. (f[23] and view.encode_after(f[23], jobs) or '')
    .. (f[16] and ',"context":' .. json.clean_object(f[16]) or '')
    .. (f[17] and ',"progress":' .. json.clean_object(f[17]) or '')
    .. (f[20] and ',"cause":' .. f[20] or '')
    .. (f[21] and ',"on_failure":' .. view.encode_branch(f[21]) or '')
    .. (f[19] and ',"constraints":' .. cjson.encode(f[19]) or '')
    .. (f[22] and ',"failures":' .. string.match(f[22], '^%d+') or '')
    .. (f[18] and ',"expiry":' .. json.number(tonumber(f[18]) or 0) or '')
    .. (held_back and ',"held_back":' .. held_back or '') .. '}'
end

function view.encode_many(jids)
  local found = {}
  for _, jid in ipairs(jids) do found[#found + 1] = view.encode(jid, #jids) end
  return json.list(found)
end

-- Of jobs that were just locked, those that still are: a repeated pop gets its first answer, which
-- may be old.
function view.encode_locked(jids, worker)
  local found = {}
  for _, jid in ipairs(jids) do found[#found + 1] = view.encode(jid, #jids, worker) end
  return json.list(found)
end

function view.encode_branch(text)
  local job = json.parse_object(text)
  return '{"queue":' .. cjson.encode(job.queue or '') .. ',"klass":'
    .. cjson.encode(job.klass or '') .. '}'
end

-- Data of early versions calls the group `type`.
function view.encode_failure(text)
  local failure = json.parse_object(text)
  if not failure.group and not failure.type then return '{}' end
  return '{"group":' .. cjson.encode(json.to_text(failure.group or failure.type)) .. ',"message":'
    .. cjson.encode(json.to_text(failure.message))
    .. ',"when":' .. json.number(tonumber(failure.when) or 0) .. ',"worker":'
      .. cjson.encode(json.to_text(failure.worker)) .. '}'
end

function view.limit_links(jobs) return math.max(10, math.floor(MOST_LINKS / jobs)) end

-- A limited list, with the total beside it.
function view.encode_set(name, key, jobs)
  local total, shown = redis.call('SCARD', key), view.limit_links(jobs)
  local some = {}
  if total > 0 then
    some = total <= shown and redis.call('SMEMBERS', key)
      or redis.call('SRANDMEMBER', key, shown)
  end
  return ',"' .. name .. '":' .. json.texts(some) .. ',"' .. name .. '_total":' .. total
end

-- The jobs that a job was last put to wait for, also those that are complete by now.
function view.encode_after(text, jobs)
  local all, some = json.parse_texts(text), {}
  for i = 1, math.min(#all, view.limit_links(jobs)) do some[i] = all[i] end
  return ',"after":' .. json.texts(some) .. ',"after_total":' .. #all
end

function view.encode_history(jid, old, jobs)
  local shown = math.min(constants.MAX_BATCH, math.floor(MOST_EVENTS / jobs))
  local items = redis.call('LRANGE', keys.history(jid), -shown, -1)
  local total = #items < shown and #items or redis.call('LLEN', keys.history(jid))
  if old then
    local all = history.convert_old(old)
    total = total + #all
    for _, item in ipairs(items) do all[#all + 1] = item end
    items = all
  end
  local presented = {}
  for i = math.max(1, #items - shown + 1), #items do
    presented[#presented + 1] = view.encode_event(items[i])
  end
  return ',"history":' .. json.list(presented) .. ',"history_total":' .. total
end

-- An event as its extra object with `when` and `what`. One that is nested too deeply for readers is
-- not ours. Most of ours are plain, and need not be parsed.
function view.encode_event(item)
  local whole, what, name, value, fraction = string.match(item, PLAIN_EVENT)
  if whole and name ~= 'when' and name ~= 'what' then
    return '{"when":' .. whole .. fraction .. ',"what":"' .. what .. '","' .. name .. '":"' .. value
      .. '"}'
  end
  local valid, event = pcall(cjson.decode, item)
  local _, nested = string.gsub(item, '[%[{]', '')
  if not valid or type(event) ~= 'table' or nested > MOST_NESTED then
    return '{"when":0,"what":"unreadable"}'
  end
  local extra = type(event[3]) == 'table' and event[3] or {}
  extra.when, extra.what = nil, nil
  local head = '{"when":' .. json.number(history.read_time(event)) .. ',"what":'
    .. cjson.encode(tostring(event[2]))
  if next(extra) == nil then return head .. '}' end
  return head .. ',' .. string.sub(cjson.encode(extra), 2)
end

-- The jobs of a failure group, each with its failure.
function view.encode_group(group, start, limit)
  local jobs = {}
  local jids = limit > 0 and redis.call('LRANGE', keys.group(group), start, start + limit - 1) or {}
  for _, jid in ipairs(jids) do
    local job = view.encode(jid, #jids)
    if job then
      local failure = json.parse_object(redis.call('HGET', keys.job(jid), 'failure'))
      jobs[#jobs + 1] = string.sub(job, 1, -2) .. ',"group":' .. cjson.encode(group)
        .. ',"message":' .. cjson.encode(json.to_text(failure.message)) .. '}'
    end
  end
  return '{"total":' .. redis.call('LLEN', keys.group(group)) .. ',"jobs":' .. json.list(jobs)
    .. '}'
end
