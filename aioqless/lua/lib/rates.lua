-- rates: rate limits: how many jobs of a key or a queue may start within a sliding window. `rate`
-- is {maximum number, seconds}. Each start is stored while it counts, so the count is exact.

-- Parse a queue's option: `100/60` for 100 per minute. nil if invalid.
function rates.parse(text)
  local many, seconds = string.match(text, '^%s*(%d+)%s*/%s*([%d%.]+)%s*$')
  many, seconds = tonumber(many), tonumber(seconds)
  return many and seconds and many >= 1 and many <= constants.MAX_RATE_STARTS and seconds > 0
    and seconds <= 1e10
    and {many, seconds} or nil
end

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

-- When the next one may start, after `ahead` others.
function rates.find_next_start(of, rate, ahead, now)
  local counted = rates.count(of, rate, now)
  local at = counted + ahead - rate[1]
  if at < 0 or counted == 0 then return now end
  local first, last = rates.window(rate, now)
  local start = redis.call('ZRANGE', keys.rate_starts(of), first, last, 'BYSCORE', 'LIMIT',
    at % counted, 1, 'WITHSCORES')[2]
  return tonumber(start) + rate[2] * (1 + math.floor(at / counted))
end

-- Store starts, and delete those that no longer count.
function rates.record_starts(of, rate, jids, now)
  local first, last = rates.window(rate, now)
  redis.call('ZREMRANGEBYSCORE', keys.rate_starts(of), '-inf', string.sub(first, 2))
  redis.call('ZREMRANGEBYSCORE', keys.rate_starts(of), '(' .. last, '+inf')
  for _, jid in ipairs(jids) do
    redis.call('ZADD', keys.rate_starts(of), now, rates.format_start(jid, now))
  end
  redis.call('PEXPIRE', keys.rate_starts(of), string.format('%.0f', math.max(1, rate[2] * 1000)))
end

function rates.format_start(jid, now) return jid .. string.format(':%.6f', now) end

-- Forget a start that was no run. Return 1 if it was stored.
function rates.remove_start(of, jid, time)
  return redis.call('ZREM', keys.rate_starts(of), rates.format_start(jid, time))
end
