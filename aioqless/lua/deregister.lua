-- deregister: take workers off the list of those known.
--
-- @rest    workers  string
-- @flags   allow-oom
-- @returns nothing

if #workers == 0 then errors.bad_argument('workers', nil, 'name at least one worker') end
redis.call('ZREM', keys.workers(), unpack(workers))
