-- history: the events of a job: `[time, what, {more}, fraction]`. The time is in whole seconds, as
-- live clients write and read it; the fraction of a second is ours, and omitted if zero.
-- The put of a new job is in its hash until its next event: a list takes 250 bytes. It has the form
-- of 2012, `[{"q":queue,"put":time}]`, which live clients move to the list, too.

local STAGE_EVENTS = {'put', 'popped', 'failed', 'done'}
local LATEST = 20
local PUT = '^%[{"q":("[^"\\]*"),"put":(%d+)(%.%d+)}%]$'

-- An event, as histories have it. `extra` is JSON or nil.
function history.encode(now, what, extra)
  local whole, more = math.floor(now), extra
  if now - whole >= 5e-7 then more = (extra or '{}') .. string.format(',%.6f', now - whole) end
  return '[' .. string.format('%d', whole) .. ',' .. cjson.encode(what)
    .. (more and ',' .. more or '') .. ']'
end

-- What the hash of a new job has. `queue` is JSON, `time` the text of a time.
function history.encode_put(time, queue)
  return '[{"q":' .. queue .. ',"put":' .. time .. '}]'
end

-- `job` is the job's record. `clears`: the caller sets the hash's field to an empty list.
function history.append(jid, job, now, what, extra, clears)
  history.append_encoded(jid, job, history.encode(now, what, extra), clears)
end

-- Append an event that jobs of a batch have in common.
function history.append_encoded(jid, job, item, clears)
  local list, old, length = keys.history(jid), job.old_history, nil
  if old then
    local put = history.read_put(old)
    if put then
      length = redis.call('RPUSH', list, put, item)
    else
      for _, each in ipairs(history.convert_old(old)) do redis.call('RPUSH', list, each) end
    end
    if not clears then record.set_fields(jid, 'history', '[]') end
    job.old_history = nil
  end
  length = length or redis.call('RPUSH', list, item)
  if length > constants.JOB_HISTORY or length > 1 and presence.has('config') then
    history.trim(list, length)
  end
end

-- The put that the hash of a job has, as an event; nil if it has more.
function history.read_put(old)
  local queue, whole, fraction = string.match(old, PUT)
  return queue and '[' .. whole .. ',"put",{"q":' .. queue .. '}'
    .. (fraction ~= '.000000' and ',0' .. fraction or '') .. ']'
end

-- Remove the latest event if it is of this kind.
function history.remove_last(jid, what)
  local event = json.parse_list(redis.call('LINDEX', keys.history(jid), -1))
  if event[2] == what then redis.call('RPOP', keys.history(jid)) end
end

-- Keep the first event and the latest ones; 0 or less: all.
function history.trim(list, length)
  local most = config.common('max-job-history')
  if length <= most or most <= 0 then return end
  local first = most > 1 and redis.call('LINDEX', list, 0)
  redis.call('LTRIM', list, -math.max(1, most - 1), -1)
  if first then redis.call('LPUSH', list, first) end
end

-- When an event happened, by its parsed item.
function history.read_time(event)
  local fraction = type(event[4]) == 'number' and event[4] >= 0 and event[4] <= 1 and event[4] or 0
  return (tonumber(event[1]) or 0) + fraction
end

-- The queue and worker of a job's last run, when it started and ended, as far as is known.
function history.read_last_run(jid)
  local run = {}
  for _, item in ipairs(redis.call('LRANGE', keys.history(jid), -LATEST, -1)) do
    local event = json.parse_list(item)
    local more = type(event[3]) == 'table' and event[3] or {}
    run.queue = json.to_text(more.q) ~= '' and json.to_text(more.q) or run.queue
    if event[2] == 'popped' then
      run.worker, run.started, run.ended = json.to_text(more.worker), history.read_time(event), nil
    elseif event[2] == 'done' or event[2] == 'failed' then
      run.ended = history.read_time(event)
    end
  end
  return run
end

-- The names of the job's latest holders, the present one first, as one text.
function history.list_holders(job, most)
  local items, met, names = redis.call('LRANGE', keys.history(job.jid), -20, -1),
    {[job.worker] = true}, {job.worker}
  for i = #items, 1, -1 do
    local event = json.parse_list(items[i])
    local worker = event[2] == 'popped' and type(event[3]) == 'table' and event[3].worker
    if type(worker) == 'string' and not met[worker] and #names < most then
      met[worker] = true
      names[#names + 1] = worker
    end
  end
  return table.concat(names, ', ')
end

-- The events of a history as stored before 2013: a list of stages in the job's hash.
function history.convert_old(text)
  local items = {}
  for _, stage in ipairs(json.parse_list(text)) do
    for _, what in ipairs(STAGE_EVENTS) do
      if stage[what] then
        local extra = what == 'put' and cjson.encode({q = stage.q or ''})
          or what == 'popped' and stage.worker and cjson.encode({worker = stage.worker})
        items[#items + 1] = history.encode(tonumber(stage[what]) or 0, what, extra)
      end
    end
  end
  return items
end
