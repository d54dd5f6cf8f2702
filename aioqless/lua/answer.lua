-- answer: a worker tells who gave an order what came of it.
--
-- @arg     answer   name          as the order has it
-- @arg     told     object        {queues, paused}, or {refused} with the reason
-- @flags   allow-oom
-- @returns nothing

redis.call('PUBLISH', keys.reply_channel(answer), told)
