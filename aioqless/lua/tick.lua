-- tick: instances of cron templates whose time has come, as the caller reckoned it; then, what is due.
-- Besides, it goes on with what failures left.
--
-- @arg     now      time
-- @arg     offset   count?        how many of those due to leave out of the reply: the caller can't reckon them
-- @batch   jid:string tick:seconds at:seconds next:seconds   a template, its tick if nobody was faster, the instance's time, the next tick
-- @option  generation text        as returned by `declare begin`
-- @present cron.list_due(now, offset or 0, answer, generation)
-- @returns json                   {now, made: [the instances' jids; '' where another was faster], next,
--                                 due: [{jid, tick, cron, timezone, backlog}]}; backlog null: missed runs are coalesced into one;
--                                 with a generation also lost: whether its declarations may be lost

cascade.run_deferred(now)
return cron.tick(each, now)
