-- arrivals: entries leave the keys of another system, one by one, each with what becomes of it.

local MOST = 100
local MOST_BYTES = 262144
local NEXT = {right = {-1, 'RPOP'}, left = {0, 'LPOP'}}

local function answer(came)
  return '{"taken":' .. came.taken .. ',"passed":' .. came.passed .. ',"refused":' .. json.list(came.refused)
    .. ',"more":' .. tostring(came.more) .. '}'
end

local function count(came, entry, refused)
  if refused then came.refused[#came.refused + 1] = refused else came.taken = came.taken + 1 end
  came.bytes = came.bytes + #entry
end

local function full(came, most)
  return came.taken + came.passed + #came.refused >= math.min(most, MOST) or came.bytes >= MOST_BYTES
end

function arrivals.of_list(prefix, ours, queue, now, side, most)
  if not NEXT[side] then refusal.argument('side', side, 'must be left or right') end
  args.name('into', ours)
  local index, pop = unpack(NEXT[side])
  local came = {taken = 0, passed = 0, refused = {}, bytes = 0, more = true}
  local at = {key = keys.foreign_queue(prefix, queue), queue = function() return ours end}
  while not full(came, most) do
    local entry = redis.call('LINDEX', at.key, index)
    if not entry then
      came.more = false
      break
    end
    at.now = now + came.taken * 0.000001 -- handed out in this order
    count(came, entry, foreign.take(entry, at))
    redis.call(pop, at.key)
  end
  return answer(came)
end

function arrivals.of_sorted(key, into, now, offset, most, queues)
  local wanted = {}
  for _, queue in ipairs(queues) do wanted[queue] = true end
  local came = {taken = 0, passed = 0, refused = {}, bytes = 0, more = true}
  local at = {key = key, queue = function(job) return job.queue and type(job.queue) == 'string' and into .. job.queue end}
  while not full(came, most) do
    local entry, score = unpack(redis.call('ZRANGE', key, offset + came.passed, offset + came.passed, 'WITHSCORES'))
    if not entry then
      came.more = false
      break
    end
    if #queues > 0 and not wanted[foreign.queue(entry)] then
      came.passed = came.passed + 1
    else
      at.score, at.due, at.now = score, tonumber(score), now + came.taken * 0.000001
      count(came, entry, foreign.take(entry, at))
      redis.call('ZREM', key, entry)
    end
  end
  return answer(came)
end
