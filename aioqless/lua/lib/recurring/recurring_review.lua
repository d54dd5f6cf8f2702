-- recurring_review: find recurring jobs whose next run was computed while this server's clock was
-- ahead, and which would stand still until then. Small steps of the clock are left alone, so that a
-- run that was put a moment ago isn't put again.

local MOST_TICKS = 100
local MOST_QUEUES = 20
local MOST_PER_QUEUE = 100

-- When a recurring job with an interval is due by its former rhythm; nil if its next run is right.
-- `first` is that of its first one if that is later than an interval; the first stays.
function recurring_review.find_due(due, interval, first, now)
  if due <= now + interval + constants.CLOCK_TOLERANCE or due <= first then return nil end
  return due - math.floor((due - now) / interval) * interval
end

-- Move those with an interval; list those with a cron expression, for which callers compute it.
-- Return both, and the page that follows.
function recurring_review.run(page, now)
  local queues = redis.call('ZRANGE', keys.queues(), page * MOST_QUEUES,
    (page + 1) * MOST_QUEUES - 1)
  local ticks = redis.call('ZRANGE', keys.ticks(), page * MOST_TICKS, (page + 1) * MOST_TICKS - 1,
    'WITHSCORES')
  local later, moved = {}, {}
  for i = 1, #ticks, 2 do
    if tonumber(ticks[i + 1]) > now + constants.CLOCK_TOLERANCE then
      later[#later + 1] = recurring_review.encode_tick(ticks[i], ticks[i + 1])
    end
  end
  for _, queue in ipairs(queues) do recurring_review.run_queue(queue, moved, now) end
  return {
    later = later, moved = moved,
    following = (#queues == MOST_QUEUES or #ticks == 2 * MOST_TICKS) and page + 1,
  }
end

function recurring_review.run_queue(queue, moved, now)
  local far = redis.call('ZRANGE', keys.recurring(queue), '+inf',
    json.number(now + constants.CLOCK_TOLERANCE), 'BYSCORE', 'REV', 'LIMIT', 0, MOST_PER_QUEUE,
    'WITHSCORES')
  for i = 1, #far, 2 do
    local jid, due = far[i], tonumber(far[i + 1])
    local f = redis.call('HMGET', keys.template(jid), 'interval', 'x-first')
    local interval, first = tonumber(f[1]), tonumber(f[2])
    local right = interval and first and recurring_review.find_due(due, interval, first, now)
    if right then
      recurring_end.schedule_next(keys.recurring(queue), queue, jid, right)
      moved[#moved + 1] = '{"jid":' .. cjson.encode(jid) .. ',"former":' .. json.number(due)
        .. ',"next":' .. json.number(right) .. '}'
    end
  end
end

-- What recurring_review.run has found, as members of the answer of `tick`.
function recurring_review.encode(found)
  return ',"later":' .. json.list(found.later) .. ',"moved":' .. json.list(found.moved)
    .. ',"page":' .. (found.following and json.number(found.following) or 'null')
end

-- JSON: a tick with what is needed to compute it; nil if there is no such recurring job.
function recurring_review.encode_tick(jid, tick)
  local f = redis.call('HMGET', keys.cron(jid), 'cron', 'timezone', 'backlog', 'x-coalesce',
    'x-until')
  return f[1] and '{"jid":' .. cjson.encode(jid) .. ',"tick":' .. json.number(tonumber(tick))
    .. ',"cron":' .. cjson.encode(f[1]) .. ',"timezone":' .. cjson.encode(f[2] or 'UTC')
    .. ',"backlog":' .. (f[4] and 'null' or json.number(tonumber(f[3]) or 0))
    .. ',"until":' .. (f[5] and json.number(tonumber(f[5]) or 0) or 'null') .. '}' or nil
end
