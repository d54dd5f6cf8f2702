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
  redis.call('ZREMRANGEBYSCORE', keys.rate_starts(of), '-inf', json.number(now - rate[2]))
  local counted = redis.call('ZCARD', keys.rate_starts(of))
  if counted >= rate[1] then  -- starts at which the clock was ahead would count until then
    counted = counted - redis.call('ZREMRANGEBYSCORE', keys.rate_starts(of),
      '(' .. json.number(now + rate[2]), '+inf')
  end
  return math.max(0, rate[1] - counted)
end

-- How many starts count, and when the next one may be. Writes nothing.
function rates.peek(of, rate, now)
  local starts = redis.call('ZCOUNT', keys.rate_starts(of), '(' .. json.number(now - rate[2]),
    '+inf')
  local oldest = starts >= rate[1]
    and redis.call('ZRANGE', keys.rate_starts(of), -rate[1], -rate[1], 'WITHSCORES')[2]
  return starts, oldest and oldest + rate[2] or now
end

-- When the next one may start, after `ahead` others.
function rates.find_next_start(of, rate, ahead, now)
  local counted = redis.call('ZCARD', keys.rate_starts(of))
  local at = counted + ahead - rate[1]
  if at < 0 or counted == 0 then return now end
  local start =
    tonumber(redis.call('ZRANGE', keys.rate_starts(of), at % counted, at % counted,
    'WITHSCORES')[2])
  return start + rate[2] * (1 + math.floor(at / counted))
end

function rates.record_starts(of, rate, jids, now)
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
