-- archive_state: the state of the archive stream, and how far a reader has stored it elsewhere.
--
-- @flags   no-writes
-- @role    worker archiver
-- @returns json                   {on, when_full, bound, length, added, first, last, reader, read,
--                                 at}; first and last are entry ids, null if there is none

local state = {}
if redis.call('EXISTS', keys.archive()) == 1 then
  local about = redis.call('XINFO', 'STREAM', keys.archive())
  for i = 1, #about, 2 do state[about[i]] = about[i + 1] end
end
local first, read = state['first-entry'],
  redis.call('HMGET', keys.archive_reader(), 'reader', 'id', 'at')
return cjson.encode({
  on = config.common('archive') == 'on', when_full = config.common('archive-when-full'),
  bound = config.common('archive-length'), length = state['length'] or 0,
  added = state['entries-added'] or 0,
  first = first and first[1] or nil, last = state['last-generated-id'], reader = read[1] or nil,
  read = read[2] or nil, at = tonumber(read[3]),
})
