-- rates: rate limits: how many jobs of a key or a queue may start within a sliding window, or what
-- their starts may cost together. `rate` is {maximum, seconds}. Each start is stored while it
-- counts, so the count is exact; one with a cost has it behind its time.

local COST_WIDTH = 15
local MAX_COSTS = 3000  -- starts with costs that count, each of which a pop reads

-- How many more may start now.
function rates.read_capacity(of, rate, now)
  return math.max(0, rate[1] - rates.count(of, rate, now))
end

-- How many starts count: those of one window. Starts at which the clock was ahead by more than that
-- would count until then, so they don't.
function rates.count(of, rate, now)
  return redis.call('ZCOUNT', keys.rate_starts(of), rates.window(rate, now))
end

function rates.window(rate, now)
  return '(' .. json.number(now - rate[2]), json.number(now + rate[2])
end

-- The number of starts of a key that count, or what they cost together.
function rates.read_used(of, limit, now)
  if not limit.cost then return rates.count(of, limit.rate, now) end
  local starts = rates.read_costs(of, limit.rate, now)
  return starts.sums[#starts.sums] or 0
end

-- The starts with costs that count, oldest first, and of each the sum up to it. A cost is at the
-- end of its start in COST_WIDTH characters, since patterns take several times as long.
function rates.read_costs(of, rate, now)
  call.costs = call.costs or {}
  local starts = call.costs[of]
  if starts then return starts end
  local first, last = rates.window(rate, now)
  local list = redis.call('ZRANGE', keys.rate_starts(of), first, last, 'BYSCORE')
  local sums, sum, sub = {}, 0, string.sub
  for i = 1, #list do
    sum = sum + (tonumber(sub(list[i], -COST_WIDTH)) or 1)
    sums[i] = sum
  end
  starts = {list = list, sums = sums}
  call.costs[of] = starts
  return starts
end

-- When starts of this number or cost fit into a limit; nil if they do now.
function rates.find_room(of, limit, wanted, now)
  if not limit.cost then
    if rates.count(of, limit.rate, now) + wanted <= limit.rate[1] then return nil end
    return rates.find_next_start(of, limit.rate, wanted - 1, now)
  end
  local starts = rates.read_costs(of, limit.rate, now)
  local many = #starts.sums
  local over = (starts.sums[many] or 0) + wanted - limit.rate[1]
  if over <= 0 and many < MAX_COSTS then return nil end
  return rates.find_freed(starts, limit.rate, over, now)
end

-- When so much of what starts cost no longer counts.
function rates.find_freed(starts, rate, over, now)
  local low, high = 1, #starts.sums
  if high == 0 then return now + rate[2] end
  local more = math.floor(math.max(0, over - starts.sums[high]) / rate[1])
  while low < high do
    local middle = math.floor((low + high) / 2)
    if starts.sums[middle] >= over then high = middle else low = middle + 1 end
  end
  local time = string.match(string.sub(starts.list[low], 1, -COST_WIDTH - 2), ':([%d.]+)$')
  return tonumber(time) + rate[2] * (1 + more)
end

-- When the next one may start, after `ahead` others of its cost.
function rates.find_next_start(of, rate, ahead, now, cost)
  if cost then
    local starts = rates.read_costs(of, rate, now)
    local over = (starts.sums[#starts.sums] or 0) + cost * (ahead + 1) - rate[1]
    return over <= 0 and now or rates.find_freed(starts, rate, over, now)
  end
  local counted = rates.count(of, rate, now)
  local at = counted + ahead - rate[1]
  if at < 0 then return now end
  if counted == 0 then return now + rate[2] * math.floor(ahead / rate[1]) end
  local first, last = rates.window(rate, now)
  local start = redis.call('ZRANGE', keys.rate_starts(of), first, last, 'BYSCORE', 'LIMIT',
    at % counted, 1, 'WITHSCORES')[2]
  return tonumber(start) + rate[2] * (1 + math.floor(at / counted))
end

-- Delete the starts that no longer count; what follows stores one.
function rates.prune(of, rate, now)
  local first, last = rates.window(rate, now)
  redis.call('ZREMRANGEBYSCORE', keys.rate_starts(of), '-inf', string.sub(first, 2))
  redis.call('ZREMRANGEBYSCORE', keys.rate_starts(of), '(' .. last, '+inf')
end

function rates.record_starts(of, rate, jids, now)
  rates.prune(of, rate, now)
  for _, jid in ipairs(jids) do
    redis.call('ZADD', keys.rate_starts(of), now, rates.format_start(jid, now))
  end
  rates.expire(of, rate)
end

function rates.record_start(of, rate, jid, now, cost)
  rates.prune(of, rate, now)
  local start = rates.format_start(jid, now, cost)
  redis.call('ZADD', keys.rate_starts(of), now, start)
  rates.expire(of, rate)
  local starts = cost and call.costs and call.costs[of]
  if starts then
    local many = #starts.sums
    starts.list[many + 1], starts.sums[many + 1] = start, (starts.sums[many] or 0) + cost
  end
end

function rates.expire(of, rate)
  redis.call('PEXPIRE', keys.rate_starts(of), string.format('%.0f', math.max(1, rate[2] * 1000)))
end

function rates.format_start(jid, now, cost)
  return jid .. string.format(':%.6f', now) .. (cost and string.format(':%015.3f', cost) or '')
end

-- Forget a start that was no run. Return 1 if it was stored.
function rates.remove_start(of, jid, time)
  return redis.call('ZREM', keys.rate_starts(of), rates.format_start(jid, time))
end

-- The start with a cost of a run that began then; nil if it no longer counts.
function rates.find_start(of, jid, time)
  local at, begin = json.number(time), rates.format_start(jid, time) .. ':'
  for _, start in ipairs(redis.call('ZRANGE', keys.rate_starts(of), at, at, 'BYSCORE')) do
    if string.sub(start, 1, #begin) == begin then return start end
  end
  return nil
end

-- Change what a start costs, or forget it without a cost. Return whether it counts.
function rates.change_cost(of, jid, time, cost)
  local start = rates.find_start(of, jid, time)
  if not start then return false end
  redis.call('ZREM', keys.rate_starts(of), start)
  local changed = cost and rates.format_start(jid, time, cost)
  if changed then redis.call('ZADD', keys.rate_starts(of), time, changed) end
  return true
end
