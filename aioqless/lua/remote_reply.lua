-- remote_reply: publish a worker's reply to a remote-control command.
--
-- @arg     channel  name          the reply's channel, as the command names it
-- @arg     reply    object        {queues, paused}, or {refused} with the reason
-- @flags   allow-oom
-- @role    worker
-- @returns nothing

redis.call('PUBLISH', keys.reply_channel(channel), reply)
