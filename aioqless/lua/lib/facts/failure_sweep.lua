-- failure_sweep: find failures that other qless clients stored.

local PERIOD = 40      -- seconds between two sweeps
local TOLERANCE = 600  -- seconds by which the clock of another client may be behind
local PAGE = 100
local MOST_LOOKS = 1000

-- Find failures that other clients stored, a bounded number per call: of each group those since
-- the sweep before. Return the seconds until the next call; 0: this sweep continues.
function failure_sweep.sweep(now)
  local used = redis.call('HGET', keys.on_failure(), '')
  if not used then return PERIOD end
  local f = redis.call('HMGET', keys.failure_sweep(), 'began', 'since', 'cursor', 'groups',
    'offset')
  local began, since, cursor = tonumber(f[1]), tonumber(f[2]), f[3] or 'ended'
  local groups, offset = json.parse_texts(f[4]), tonumber(f[5]) or 0
  if cursor == 'ended' then
    if began and math.abs(now - began) < PERIOD then return began + PERIOD - now end
    since = math.max(tonumber(used), (began or now) - TOLERANCE)
    began, cursor, groups, offset = now, '0', nil, 0
  end
  local left = MOST_LOOKS
  repeat
    if not groups or #groups == 0 and cursor ~= '0' then
      local step = redis.call('SSCAN', keys.failures(), cursor, 'COUNT', PAGE)
      cursor, groups, offset, left = step[1], step[2], 0, left - 1
    elseif #groups > 0 then
      local looked, recent = failure_sweep.sweep_page(groups[1], offset, since, now)
      left, offset = left - 1 - looked, offset + looked
      if looked < PAGE or not recent then
        table.remove(groups, 1)
        offset = 0
      end
    end
    if #groups == 0 and cursor == '0' then cursor = 'ended' end
  until left <= 0 or cursor == 'ended'
  redis.call('HSET', keys.failure_sweep(), 'began', string.format('%.6f', began), 'since',
    string.format('%.6f', since), 'cursor', cursor, 'groups', json.texts(groups), 'offset', offset)
  return cursor == 'ended' and PERIOD or 0
end

-- A page of a group, newest first. Return how many jobs it has, and whether one failed since then.
function failure_sweep.sweep_page(group, offset, since, now)
  local jids = redis.call('LRANGE', keys.group(group), offset, offset + PAGE - 1)
  local recent = false
  for _, jid in ipairs(jids) do
    local f = redis.call('HMGET', keys.job(jid), 'x-cascade', 'x-on-failure', 'klass', 'failure',
      'state', 'x-failures', 'time', 'x-follow-up', 'x-constraints')
    local when = tonumber(string.match(f[4] or '', '"when":%s*(%-?[%d.]+)')) or 0
    if when >= math.floor(since) then
      recent = true
      local known = string.match(f[6] or '', '^%d+ (.*)$')
      if f[5] == 'failed' and known ~= f[7] then
        failure_sweep.catch_up(jid, f, group, when, now)
      end
    end
  end
  return #jids, recent
end

-- A failure is found that no script of ours stored, or that mattered to nothing at that time.
function failure_sweep.catch_up(jid, f, group, when, now)
  if f[8] then
    local own = job_constraints.read(f[9])
    if own.debounce then debounce.hand_over(jid, own.unique, now) end
  end
  local declared = redis.call('HGET', keys.on_failure(), f[3] or '')
  if declared and when <= tonumber(string.match(declared, '^%S+')) then declared = nil end
  if not (f[1] or f[2] or declared) then return end
  local job = record.read(jid)
  notes.store('failed', {
    jid = jid, queue = job.queue, time = job.time_text, cascade = f[1], own = f[2], klass = f[3],
    declared = declared, group = group, message = json.to_text(json.parse_object(f[4]).message),
  })
end
