-- tenants: list the tenants of a queue with fair turns.

local LOOKS = 50

-- A page of tenants, as JSON. The last one also has those of which jobs run and none waits.
function tenants.list(queue, offset, count, now)
  local running, found = tenants.count_running(queue), {looks = 0}
  local members = redis.call('ZRANGE', keys.turns(queue), offset, offset + count - 1, 'REV')
  for _, tenant in ipairs(members) do
    local number = running[tenant] or 0
    running[tenant] = nil
    tenants.describe(found, queue, tenant, number, now)
  end
  local total = redis.call('ZCARD', keys.turns(queue))
  local is_last = offset <= total and total < offset + count
  for tenant, number in pairs(is_last and running or {}) do
    if not redis.call('ZSCORE', keys.turns(queue), tenant) then
      tenants.describe(found, queue, tenant, number, now)
    end
  end
  return json.list(found)
end

function tenants.describe(found, queue, tenant, running, now)
  local waiting, first = tenants.count_waiting(queue, tenant, found)
  if waiting + running == 0 then return end
  local priority, key = string.match(tenant, '^(%-?%d+):(.*)$')
  local _, since = turns.parse(first and redis.call('HGET', keys.job(first), 'x-turn') or nil)
  found[#found + 1] = '{"key":' .. cjson.encode(key) .. ',"priority":'
    .. json.number(priority_score.negate(tonumber(priority))) .. ',"waiting":' .. waiting
    .. ',"running":' .. running .. ',"lag":'
    .. json.number(since and math.max(0, now - since) or 0) .. '}'
end

-- Return the number of a tenant's waiting jobs, and the first of them. Jobs that another client has
-- popped are still at the head of the list. A call looks at a thousand at most: `found.looks` so
-- far.
function tenants.count_waiting(queue, tenant, found)
  local key, gone = keys.tenant(queue, tenant), 0
  local total = redis.call('ZCARD', key)
  while gone < total and found.looks < constants.MAX_BATCH do
    local page = redis.call('ZRANGE', key, gone, gone + LOOKS - 1, 'REV')
    for _, jid in ipairs(page) do
      if turns.is_waiting(queue, jid) then return total - gone, jid end
      gone = gone + 1
    end
    found.looks = found.looks + #page
  end
  return total - gone, redis.call('ZRANGE', key, gone, gone, 'REV')[1]
end

-- The number of running jobs of each tenant, among the first thousand of the queue.
function tenants.count_running(queue)
  local running = {}
  for _, jid in ipairs(redis.call('ZRANGE', keys.locks(queue), 0, constants.MAX_BATCH - 1)) do
    local job = redis.call('HMGET', keys.job(jid), 'priority', 'x-constraints')
    local tenant = job[2]
      and turns.name_tenant(tonumber(job[1]) or 0, job_constraints.read(job[2]))
    if tenant then running[tenant] = (running[tenant] or 0) + 1 end
  end
  return running
end
