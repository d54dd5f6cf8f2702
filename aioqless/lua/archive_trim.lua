-- archive_trim: delete entries of the archive stream that are stored elsewhere.
--
-- @arg     id       entry_id      the last entry to delete
-- @arg     reader   name          who stores them; from then on only this reader may trim
-- @arg     now      time
-- @option  takeover string        any value: make this reader the owner of the archive
--                                 before
-- @flags   allow-oom
-- @role    archiver
-- @returns count                  the number of entries deleted; at most 100,000 per call

local MOST = 100000
local former = redis.call('HGET', keys.archive_reader(), 'reader')
if former and former ~= reader and not takeover then
  errors.bad_argument('reader', reader,
    'does not own this archive, which ' .. former
    .. ' does; with two readers, each would miss what the other trims')
end
redis.call('HSET', keys.archive_reader(), 'reader', reader, 'id', id, 'at', json.number(now))
local ms, seq = string.match(id, '(.+)-(.+)')
local after = ms .. '-' .. string.format('%.0f', tonumber(seq) + 1)
local gone = redis.call('XTRIM', keys.archive(), 'MINID', '~', after, 'LIMIT', MOST)
-- The first call deletes whole nodes of the stream; this one deletes single entries of the first
-- node left.
if gone < MOST then gone = gone + redis.call('XTRIM', keys.archive(), 'MINID', after) end
return tostring(gone)
