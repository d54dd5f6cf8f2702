-- deregister: remove workers from the list of known workers.
--
-- @rest    workers  string
-- @flags   allow-oom
-- @role    worker dashboard
-- @returns nothing

if #workers == 0 then errors.bad_argument('workers', nil, 'name at least one worker') end
redis.call('ZREM', keys.workers(), unpack(workers))
redis.call('HDEL', keys.subscriptions(), unpack(workers))
