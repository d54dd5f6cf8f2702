-- key_entries: go through the entries of a key, and remove them.

local PORTION = 100

-- Call `look` with a portion of a set's members, and their scores if any.
function key_entries.scan_members(here, command, look)
  local step = redis.call(command, here.key, here.at, 'COUNT', math.min(here.most, PORTION))
  local width = command == 'SSCAN' and 1 or 2
  for i = 1, #step[2], width do look(step[2][i], step[2][i + 1]) end
  return 1 + #step[2] / width, step[1] ~= '0' and step[1] or nil
end

-- A repair that removes a member from the sorted set being checked.
function key_entries.remove(here, member)
  return function() redis.call('ZREM', here.key, member) end
end
