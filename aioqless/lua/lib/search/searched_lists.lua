-- searched_lists: the lists of jobs that a search reads, one after the other.

local MOST_NAMES = 10000
local NEWEST_FIRST = {waiting = true, complete = true, tag = true}

function searched_lists.is_newest_first(stage) return NEWEST_FIRST[stage] end

-- The names of the lists of a stage, sorted.
function searched_lists.list_names(search, stage)
  if stage == 'complete' or stage == 'jid' then return {''} end
  local names
  if stage == 'failed' then
    names = search.values.group or redis.call('SRANDMEMBER', keys.failures(), MOST_NAMES)
  elseif stage == 'tag' or stage == 'worker' then
    names = search.values[stage]
  else
    search.queues = search.queues or search.values.queue
      or redis.call('ZRANGE', keys.queues(), 0, MOST_NAMES - 1)
    names = search.queues
  end
  table.sort(names)
  return names
end

function searched_lists.find_key(stage, name)
  if stage == 'running' then return keys.locks(name) end
  if stage == 'waiting' then return keys.waiting(name) end
  if stage == 'scheduled' then return keys.scheduled(name) end
  if stage == 'depends' then return keys.depends(name) end
  if stage == 'failed' then return keys.group(name) end
  if stage == 'tag' then return keys.tag(name) end
  if stage == 'worker' then return keys.worker_jobs(name) end
  return keys.completed()
end

-- The ranks of a list between which it is searched.
function searched_lists.read_bounds(search, stage, name)
  local key, times = searched_lists.find_key(stage, name), search.times
  if stage == 'jid' then return 0, #search.values.jid end
  if stage == 'failed' then return 0, redis.call('LLEN', key) end
  if stage ~= 'complete' then return 0, redis.call('ZCARD', key) end
  local newer = times.most < math.huge
    and redis.call('ZCOUNT', key, json.number(times.most), '+inf') or 0
  return newer, times.least == -math.huge and redis.call('ZCARD', key)
    or redis.call('ZCOUNT', key, json.number(times.least), '+inf')
end

-- The rank of the entry behind a position.
function searched_lists.find_rank(at)
  local key = searched_lists.find_key(at.stage, at.name)
  if at.stage == 'jid' then return math.floor(tonumber(at.mark)) end
  if at.stage == 'failed' then
    return math.max(0, redis.call('LLEN', key) - math.floor(tonumber(at.mark)))
  end
  local first = redis.call('ZCOUNT', key, '-inf', '(' .. at.mark)
  local limit = first + redis.call('ZCOUNT', key, at.mark, at.mark)
  while first < limit do
    local middle = math.floor((first + limit) / 2)
    local jid = redis.call('ZRANGE', key, middle, middle)[1]
    if searched_lists.is_before(jid, at.jid) then first = middle + 1 else limit = middle end
  end
  if NEWEST_FIRST[at.stage] then return redis.call('ZCARD', key) - first end
  return redis.call('ZRANGE', key, first, first)[1] == at.jid and first + 1 or first
end

-- Whether a member of a sorted set comes before another one of the same score. Comparing strings in
-- Lua follows the server's locale.
function searched_lists.is_before(one, other)
  for i = 1, math.min(#one, #other) do
    local a, b = string.byte(one, i), string.byte(other, i)
    if a ~= b then return a < b end
  end
  return #one < #other
end

-- {jid, score} of the entries from one rank up to another.
function searched_lists.read_page(search, stage, name, first, limit)
  local key, page = searched_lists.find_key(stage, name), {}
  if stage == 'jid' or stage == 'failed' then
    local jids = stage == 'failed' and redis.call('LRANGE', key, first, limit - 1)
      or search.values.jid
    for i = stage == 'jid' and first + 1 or 1, #jids do page[#page + 1] = {jids[i]} end
    return page
  end
  local entries = NEWEST_FIRST[stage]
    and redis.call('ZRANGE', key, first, limit - 1, 'REV', 'WITHSCORES')
    or redis.call('ZRANGE', key, first, limit - 1, 'WITHSCORES')
  for i = 1, #entries, 2 do page[#page + 1] = {entries[i], entries[i + 1]} end
  return page
end
