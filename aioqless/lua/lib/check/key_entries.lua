-- key_entries: go through the entries of a key, and remove them; find missing reviews.

local PORTION = 100
local LATEST_REVIEW = 10000  -- seconds from now; of a set with 20 million open members

-- Call `look` with a portion of a set's members, and their scores if any.
function key_entries.scan_members(here, command, look)
  local step = redis.call(command, here.key, here.at, 'COUNT', math.min(here.most, PORTION))
  local width = command == 'SSCAN' and 1 or 2
  for i = 1, #step[2], width do look(step[2][i], step[2][i + 1]) end
  return 1 + #step[2] / width, step[1] ~= '0' and step[1] or nil
end

-- What other clients may change has a note for its next review. One that is due much later was
-- scheduled while the clock was ahead.
function key_entries.check_review(here, kind, about)
  local due = tonumber(redis.call('ZSCORE', keys.agenda(), notes.encode(kind, about)))
  if due and due <= here.now + LATEST_REVIEW then return end
  findings.add('not-reviewed', {kind = kind, about = about},
    function() notes.schedule(kind, about, here.now) end)
end

-- A repair that removes a member from the sorted set being checked.
function key_entries.remove(here, member)
  return function() redis.call('ZREM', here.key, member) end
end
