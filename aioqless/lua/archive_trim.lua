-- archive_trim: entries of the archive's stream that are safely kept elsewhere go.
--
-- @arg     id       name          the last of them
-- @arg     reader   name          who keeps them: nobody else may trim after it
-- @arg     now      time
-- @option  takeover string        anything: from now on this reader, whoever it was
-- @flags   allow-oom
-- @returns number                 how many went; what is too much for a call, the next one goes on with

local MOST = 100000
local ms, seq = string.match(id, '^(%d+)%-(%d+)$')
if not ms or #id > 40 then errors.bad_argument('id', id, 'is not the id of an entry') end
local former = redis.call('HGET', keys.archive_reader(), 'reader')
if former and former ~= reader and not takeover then
  errors.bad_argument('reader', reader, 'is not who keeps this archive: that is ' .. former .. '; two that trim would each miss what the other has')
end
redis.call('HSET', keys.archive_reader(), 'reader', reader, 'id', id, 'at', json.number(now))
local after = ms .. '-' .. string.format('%.0f', tonumber(seq) + 1)
local gone = redis.call('XTRIM', keys.archive(), 'MINID', '~', after, 'LIMIT', MOST)
-- That goes by whole nodes; of the first that is left, by entries.
if gone < MOST then gone = gone + redis.call('XTRIM', keys.archive(), 'MINID', after) end
return tostring(gone)
