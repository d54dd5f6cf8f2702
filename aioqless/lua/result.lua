-- result: what the handler of a completed job returned, if the job keeps that.
--
-- @arg     jid      string
-- @flags   no-writes
-- @returns json                   as the handler returned it
-- @raises  NORESULT

local text, why = results.read(jid)
if not text then errors.raise('NORESULT', why, {jid = jid}) end
return text
