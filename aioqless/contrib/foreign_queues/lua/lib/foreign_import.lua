-- foreign_import: move entries out of another system's keys, one by one.

local MOST = 100
local MOST_BYTES = 262144
local DEAD_AFTER = 360
local NEXT = {right = {-1, 'RPOP'}, left = {0, 'LPOP'}}

local function encode_result(result)
  return '{"taken":' .. result.taken .. ',"passed":' .. result.passed .. ',"refused":'
    .. json.list(result.refused)
    .. ',"more":' .. tostring(result.more) .. '}'
end

local function add_entry(result, entry, refused)
  if refused then
    result.refused[#result.refused + 1] = refused
  else
    result.taken = result.taken + 1
  end
  result.bytes = result.bytes + #entry
end

local function is_full(result, most)
  return result.taken + result.passed + #result.refused >= math.min(most, MOST)
    or result.bytes >= MOST_BYTES
end

local function create_result()
  return {taken = 0, passed = 0, refused = {}, bytes = 0, more = true}
end

-- Take entries from one end of a list until `result` is full. `source`: {prefix, into, now,
-- first_retry}. Return whether the list is empty.
local function drain_list(source, key, queue, side, result, most)
  local ours, index, pop = source.into .. queue, unpack(NEXT[side])
  local at = {key = key, queue = function() return ours end, first_retry = source.first_retry}
  while not is_full(result, most) do
    local entry = redis.call('LINDEX', key, index)
    if not entry then return true end
    at.now = source.now + result.taken * 0.000001  -- popped in this order
    add_entry(result, entry, foreign_format.put(entry, at))
    redis.call(pop, key)
  end
  return false
end

function foreign_import.take_from_list(source, queue, side, most)
  if not NEXT[side] then errors.bad_argument('side', side, 'must be left or right') end
  args.name('into', source.into .. queue)
  local result = create_result()
  result.more = not drain_list(source, keys.foreign_queue(source.prefix, queue), queue, side,
    result, most)
  return encode_result(result)
end

-- Whether a node of exq is dead by exq's defaults: six heartbeats of a minute each are missing. A
-- live node with other defaults still has a key of its own.
function foreign_import.is_dead(source, node)
  local beat = redis.call('ZSCORE', keys.foreign_heartbeats(source.prefix), node)
  return beat and tonumber(beat) <= source.now - DEAD_AFTER
    and redis.call('EXISTS', keys.foreign_node(source.prefix, node)) == 0
end

function foreign_import.list_dead_nodes(source)
  local dead = {}
  for _, node in ipairs(redis.call('ZRANGE', keys.foreign_heartbeats(source.prefix), '-inf',
    source.now - DEAD_AFTER, 'BYSCORE', 'LIMIT', 0, constants.MAX_BATCH)) do
    if foreign_import.is_dead(source, node) then dead[#dead + 1] = node end
  end
  return json.texts(dead)
end

-- Take what a dead node had taken from some queues and not finished.
function foreign_import.take_from_backups(source, node, queues, most)
  local result = create_result()
  result.more = false
  for _, queue in ipairs(foreign_import.is_dead(source, node) and queues or {}) do
    args.name('into', source.into .. queue)
    result.more = not drain_list(source, keys.foreign_backup(source.prefix, node, queue), queue,
      'right',
      result, most)
    if result.more then break end
  end
  return encode_result(result)
end

function foreign_import.take_from_sorted_set(source, name, offset, most, queues)
  local key, into, now, wanted = keys.foreign_sorted(source.prefix, name), source.into, source.now,
    {}
  for _, queue in ipairs(queues) do wanted[queue] = true end
  local result = create_result()
  local at = {
    key = key, queue = function(job) return job.queue and type(job.queue) == 'string' and into
      .. job.queue end, first_retry = source.first_retry,
  }
  while not is_full(result, most) do
    local entry, score =
      unpack(redis.call('ZRANGE', key, offset + result.passed, offset + result.passed,
        'WITHSCORES'))
    if not entry then
      result.more = false
      break
    end
    if #queues > 0 and not wanted[foreign_format.read_queue(entry)] then
      result.passed = result.passed + 1
    else
      at.score, at.due, at.now = score, tonumber(score), now + result.taken * 0.000001
      add_entry(result, entry, foreign_format.put(entry, at))
      redis.call('ZREM', key, entry)
    end
  end
  return encode_result(result)
end
