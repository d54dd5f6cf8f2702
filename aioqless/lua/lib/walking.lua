-- walking: through all keys of the namespace, a bounded portion in each call.
-- A cursor says where SCAN stands, and which of the keys that it named aren't through, each with where the walk in it stands.

local KEYS_AT_ONCE = 10
local MOST_LEFT = 1000

-- Returns the next cursor, '0' at the end, and how many things were looked at.
function walking.walk(cursor, budget, now)
  local scan, left = walking.read(cursor)
  local spent = 0
  while spent < budget and (scan or #left > 0) do
    if #left > 0 then
      local key = table.remove(left)
      local cost, at = contents.examine({key = key[1], at = key[2], most = budget - spent, now = now})
      if at then left[#left + 1] = {key[1], at} end
      spent = spent + cost
    else
      scan, left = walking.step(scan)
      spent = spent + 1
    end
  end
  if not scan and #left == 0 then return '0', spent end
  return cjson.encode({scan or 'end', left}), spent
end

-- The next keys. SCAN's own end is told by nil.
function walking.step(scan)
  local pattern = string.gsub(ns, '[%*%?%[%]\\^-]', '\\%0') .. ':*'
  local step = redis.call('SCAN', scan, 'MATCH', pattern, 'COUNT', KEYS_AT_ONCE)
  local left = {}
  for i, key in ipairs(step[2]) do left[i] = {key, '0'} end
  return step[1] ~= '0' and step[1] or nil, left
end

-- A cursor comes from outside: it must not lead to keys of others.
function walking.read(text)
  if not text or text == '0' then return '0', {} end
  local valid, cursor = pcall(cjson.decode, text)
  valid = valid and type(cursor) == 'table' and type(cursor[2]) == 'table' and #cursor[2] <= MOST_LEFT
    and (cursor[1] == 'end' or walking.is_position(cursor[1]))
  for _, key in ipairs(valid and cursor[2] or {}) do
    valid = valid and type(key) == 'table' and type(key[1]) == 'string' and string.sub(key[1], 1, #ns + 1) == ns .. ':'
      and walking.is_position(key[2])
  end
  if not valid then refusal.argument('cursor', text, 'is none that a check has given') end
  return cursor[1] ~= 'end' and cursor[1] or nil, cursor[2]
end

function walking.is_position(text) return type(text) == 'string' and #text < 20 and string.find(text, '^%d+$') ~= nil end
