-- keyspace_scan: scan all keys of the namespace, a bounded portion per call.
-- A cursor holds the position of SCAN, and the keys that it returned and that are not finished,
-- each with a position in the key.

local KEYS_AT_ONCE = 10
local MOST_LEFT = 1000

-- Return the next cursor, '0' at the end, and the cost.
function keyspace_scan.run(cursor, budget, now)
  local scan, left = keyspace_scan.parse_cursor(cursor)
  local spent, families = 0, key_types.families()
  while spent < budget and (scan or #left > 0) do
    if #left > 0 then
      local key = table.remove(left)
      local cost, at = key_types.check({
        key = key[1], at = key[2], most = budget - spent, now = now,
      }, families)
      if at then left[#left + 1] = {key[1], at} end
      spent = spent + cost
    else
      scan, left = keyspace_scan.scan_keys(scan)
      spent = spent + 1
    end
  end
  if not scan and #left == 0 then return '0', spent end
  return cjson.encode({scan or 'end', left}), spent
end

-- The next keys, and the next position of SCAN; nil at its end.
function keyspace_scan.scan_keys(scan)
  local pattern = string.gsub(ns, '[%*%?%[%]\\^-]', '\\%0') .. ':*'
  local step = redis.call('SCAN', scan, 'MATCH', pattern, 'COUNT', KEYS_AT_ONCE)
  local left = {}
  for i, key in ipairs(step[2]) do left[i] = {key, '0'} end
  return step[1] ~= '0' and step[1] or nil, left
end

-- Parse a cursor. It comes from outside: it must not lead to keys of others.
function keyspace_scan.parse_cursor(text)
  if not text or text == '0' then return '0', {} end
  local valid, cursor = pcall(cjson.decode, text)
  valid = valid and type(cursor) == 'table' and type(cursor[2]) == 'table'
    and #cursor[2] <= MOST_LEFT
    and (cursor[1] == 'end' or keyspace_scan.is_cursor(cursor[1]))
  for _, key in ipairs(valid and cursor[2] or {}) do
    valid = valid and type(key) == 'table' and type(key[1]) == 'string'
      and string.sub(key[1], 1, #ns + 1) == ns .. ':'
      and keyspace_scan.is_cursor(key[2])
  end
  if not valid then errors.bad_argument('cursor', text, 'is not a cursor of check') end
  return cursor[1] ~= 'end' and cursor[1] or nil, cursor[2]
end

function keyspace_scan.is_cursor(text)
  return type(text) == 'string' and #text < 20 and string.find(text, '^%d+$') ~= nil
end
