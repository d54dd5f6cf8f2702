-- rotation: which queue the next job comes from, if a worker serves several.

local SOON = 0.001  -- seconds to wait at least if more jobs are in sight

-- The batch of a call. There is one answer for all, so one error refuses all.
function rotation.read_queues(each)
  local queues = each(rotation.read_queue)
  for _, queue in ipairs(queues) do
    if queue.err then error(queue) end
  end
  return queues
end

function rotation.read_queue(queue, limit) return {name = queue, limit = limit or math.huge} end

-- Empty the first queue, then the second, and so on.
function rotation.pop_in_order(queues, by, count, now, prefers_waiting)
  local jids = {}
  for _, queue in ipairs(queues) do
    local most = math.min(queue.limit, count - #jids)
    for _, jid in ipairs(pop.take(queue.name, by, most, now, prefers_waiting)) do
      jids[#jids + 1] = jid
    end
  end
  return jids
end

-- One job from each queue in turn. The shares are computed first, so that each queue is popped from
-- once.
function rotation.pop_in_turn(queues, by, count, now)
  if count > 0 then pop.register_worker(by, now) end  -- even if all queues are empty
  local shares = rotation.compute_shares(queues, count, now)
  local popped, missing = {}, 0
  for i, queue in ipairs(queues) do
    popped[i] = pop.take(queue.name, by, shares[i], now)
    missing = missing + shares[i] - #popped[i]
  end
  -- What a queue could not give because of grace periods or a limit, others may.
  for i, queue in ipairs(queues) do
    local more = pop.take(queue.name, by, math.min(queue.limit - #popped[i], missing), now)
    for _, jid in ipairs(more) do popped[i][#popped[i] + 1] = jid end
    missing = missing - #more
  end
  local jids, turn = {}, 1
  repeat
    local before = #jids
    for i = 1, #queues do jids[#jids + 1] = popped[i][turn] end
    turn = turn + 1
  until #jids == before
  return jids
end

-- How many jobs each queue gives if they take turns until `count` is reached.
function rotation.compute_shares(queues, count, now)
  local shares, left = {}, {}
  for i, queue in ipairs(queues) do
    shares[i], left[i] = 0, math.min(queue.limit, pop.count_available(queue.name, now))
  end
  while count > 0 do
    local before = count
    for i = 1, #queues do
      if count > 0 and left[i] > 0 then
        shares[i], left[i], count = shares[i] + 1, left[i] - 1, count - 1
      end
    end
    if count == before then break end
  end
  return shares
end

-- Seconds until a job of the queues becomes due by itself (a delay, an interval, an expiring lock);
-- '' if none will. In a closed queue, what is due already waits for something other than time.
function rotation.find_next_due(each, now)
  local first = math.huge
  for _, queue in ipairs(rotation.read_queues(each)) do
    first = math.min(first, pop.get_known_due(queue.name) or rotation.find_queue_due(queue, now))
  end
  if first == math.huge then return '' end
  return json.number(math.max(SOON, first - now))
end

function rotation.find_queue_due(queue, now)
  local first, name = math.huge, queue.name
  local from = rotation.is_closed(name, now) and '(' .. json.number(now) or '-inf'
  for _, key in ipairs({keys.scheduled(name), keys.recurring(name), keys.locks(name)}) do
    local due = redis.call('ZRANGE', key, from, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]
    first = math.min(first, tonumber(due) or math.huge)
  end
  local rate = config.rate(name)
  if rate and rates.read_capacity('q:' .. name, rate, now) == 0 then
    first = math.min(first, rates.find_next_start('q:' .. name, rate, 0, now))
  end
  return first
end

-- Whether a queue gives nothing now, whatever it holds.
function rotation.is_closed(queue, now)
  return queue_sets.is_paused(queue) or pop.read_capacity(queue, now) == 0
end

-- The reply of pop_many.
function rotation.reply(answer, worker, count, each, now)
  local next_due = #answer < 2 * count and rotation.find_next_due(each, now) or ''
  return {job_row.list(answer, worker), next_due, string.format('%.17g', now)}
end

-- When a pop may bring jobs, or a note is due, past or 0: now; '': neither is in sight. The clock
-- isn't asked for a note, which is all that most idle workers find.
function rotation.find_ready(queues, now)
  local used = {}
  rotation.list_used(queues, 1, #queues, used)
  local note = redis.call('ZRANGE', keys.agenda(), '0', '0', 'WITHSCORES')[2]
  if not used[1] then return note or '' end
  now = now or clock.now()
  local first = tonumber(note) or math.huge
  for _, queue in ipairs(used) do
    local waits = redis.call('EXISTS', keys.waiting(queue)) == 1
      and not rotation.is_closed(queue, now)
    first = math.min(first, waits and now or rotation.find_queue_due({name = queue}, now))
  end
  if first == math.huge then return '' end
  return first <= now and '0' or json.number(first)
end

-- Add to `used` the queues that have any job, of those from `first` to `last`. Where few have, a
-- few commands tell, however many queues there are.
function rotation.list_used(queues, first, last, used)
  local sets = {}
  for i = first, last do
    sets[#sets + 1] = keys.waiting(queues[i])
    sets[#sets + 1] = keys.scheduled(queues[i])
    sets[#sets + 1] = keys.recurring(queues[i])
    sets[#sets + 1] = keys.locks(queues[i])
  end
  local found, middle = redis.call('EXISTS', unpack(sets)), math.floor((first + last) / 2)
  if found == 0 then return end
  if found * 4 > last - first then
    for i = first, last do used[#used + 1] = queues[i] end
  else
    rotation.list_used(queues, first, middle, used)
    rotation.list_used(queues, middle + 1, last, used)
  end
end
