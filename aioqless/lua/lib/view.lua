-- view: a job as callers see it, in JSON.

local MOST_OF_ALL = 10000
local MOST_NESTED = 500
local shown = constants.MAX_BATCH

-- Limit the lists within each of several jobs to the latest entries: the more jobs, the fewer.
function view.limit_lists(jobs)
  shown = math.min(constants.MAX_BATCH, math.floor(MOST_OF_ALL / math.max(1, jobs)))
end

-- nil for a job that doesn't exist.
function view.encode(jid)
  local f = redis.call('HMGET', keys.job(jid), 'jid', 'klass', 'state', 'queue', 'worker',
    'priority', 'retries', 'remaining',
    'expires', 'data', 'tags', 'failure', 'spawned_from_jid', 'history', 'x-fence', 'x-context',
      'x-progress', 'x-start-by', 'x-terms')
  if not f[1] then return nil end
  local parts = {
    '"jid":' .. cjson.encode(jid),
    '"klass":' .. cjson.encode(f[2] or ''),
    '"state":' .. cjson.encode(f[3] or ''),
    '"queue":' .. cjson.encode(f[4] or ''),
    '"worker":' .. cjson.encode(f[5] or ''),
    '"tracked":' .. tostring(redis.call('ZSCORE', keys.tracked(), jid) ~= false),
    '"priority":' .. json.number(priority_score.negate(tonumber(f[6]) or 0)),
    '"retries":' .. json.number(tonumber(f[7]) or constants.DEFAULT_RETRIES),
    '"remaining":'
      .. json.number(math.floor(tonumber(f[8]) or tonumber(f[7]) or constants.DEFAULT_RETRIES)),
    '"expires":' .. json.number(tonumber(f[9]) or 0),
    '"data":' .. cjson.encode(f[10] or 'null'),
    '"tags":' .. json.clean_list(f[11]),
    '"failure":' .. view.encode_failure(f[12]),
    '"spawned_from_jid":' .. cjson.encode(f[13]),
    '"fence":' .. json.number(tonumber(f[15]) or 0),
    view.encode_set('dependencies', keys.dependencies(jid)),
    view.encode_set('dependents', keys.dependents(jid)),
    view.encode_history(jid, f[14]),
  }
  if f[16] then parts[#parts + 1] = '"context":' .. json.clean_object(f[16]) end
  if f[17] then parts[#parts + 1] = '"progress":' .. json.clean_object(f[17]) end
  if f[18] then parts[#parts + 1] = '"start_by":' .. json.number(tonumber(f[18]) or 0) end
  local held_back = f[3] == 'scheduled' and f[19] and limits.explain_hold(jid, f[4] or '', f[19])
  if held_back then parts[#parts + 1] = '"held_back":' .. held_back end
  return '{' .. table.concat(parts, ',') .. '}'
end

function view.encode_many(jids)
  view.limit_lists(#jids)
  local found = {}
  for _, jid in ipairs(jids) do found[#found + 1] = view.encode(jid) end
  return json.list(found)
end

-- Of jobs that were just locked, those that still are: a repeated pop gets its first answer, which
-- may be old.
function view.encode_locked(jids, worker)
  view.limit_lists(#jids)
  local found = {}
  for _, jid in ipairs(jids) do
    local now = redis.call('HMGET', keys.job(jid), 'state', 'worker')
    if now[1] == 'running' and now[2] == worker then found[#found + 1] = view.encode(jid) end
  end
  return json.list(found)
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

-- A limited list, with the total beside it.
function view.encode_set(name, key)
  local total = redis.call('SCARD', key)
  local some = {}
  if total > 0 then
    some = total <= shown and redis.call('SMEMBERS', key) or redis.call('SRANDMEMBER', key, shown)
  end
  return '"' .. name .. '":' .. json.texts(some) .. ',"' .. name .. '_total":' .. total
end

function view.encode_history(jid, old)
  local total = redis.call('LLEN', keys.history(jid))
  local items = total > 0 and redis.call('LRANGE', keys.history(jid), -shown, -1) or {}
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
  return '"history":' .. json.list(presented) .. ',"history_total":' .. total
end

-- An event as its extra object with `when` and `what`. One that is nested too deeply for readers is
-- not ours.
function view.encode_event(item)
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
  view.limit_lists(#jids)
  for _, jid in ipairs(jids) do
    local job = view.encode(jid)
    if job then
      local failure = json.parse_object(redis.call('HGET', keys.job(jid), 'failure'))
      jobs[#jobs + 1] = string.sub(job, 1, -2) .. ',"group":' .. cjson.encode(group)
        .. ',"message":' .. cjson.encode(json.to_text(failure.message)) .. '}'
    end
  end
  return '{"total":' .. redis.call('LLEN', keys.group(group)) .. ',"jobs":' .. json.list(jobs)
    .. '}'
end
