-- position: the place of a waiting job in its queue.
--
-- @arg     jid      any_jid
-- @arg     now      time
-- @flags   no-writes
-- @role    producer
-- @returns json                   null for a job that doesn't wait

return listing.describe_position(jid, now)
