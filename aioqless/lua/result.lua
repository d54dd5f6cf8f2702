-- result: the result of a completed job, if the job keeps it.
--
-- @arg     jid      string
-- @flags   no-writes
-- @role    producer
-- @returns json                   as the handler returned it
-- @raises  NORESULT

local text, why, state = results.read(jid)
if not text then errors.raise('NORESULT', why, {jid = jid, state = state}) end
return text
