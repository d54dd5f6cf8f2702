-- log: add an event of one's own to a job's history.
--
-- @arg     jid      string
-- @arg     message  string
-- @arg     now      time
-- @arg     data     object?       a JSON object with more about it
-- @flags   allow-oom
-- @returns nothing
-- @raises  NOJOB

history.append(jid, record.require(jid), now, message, data)
