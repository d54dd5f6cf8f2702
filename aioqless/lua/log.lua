-- log: add a custom event to a job's history.
--
-- @arg     jid      string
-- @arg     message  string
-- @arg     now      time
-- @arg     data     object?       details
-- @flags   allow-oom
-- @role    worker people dashboard
-- @returns nothing
-- @raises  NOJOB

history.append(jid, record.require(jid), now, message, data)
