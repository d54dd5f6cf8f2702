-- errors: structured errors, raised before anything is written.

-- End the script with the error `CODE {json}`; `fields` are details for the caller.
function errors.raise(code, why, fields)
  fields = fields or {}
  for name, value in pairs(fields) do
    if type(value) == 'string' then fields[name] = string.sub(value, 1, 200) end
  end
  fields.why = why
  error({err = code .. ' ' .. cjson.encode(fields)})
end

function errors.bad_argument(name, value, why)
  errors.raise('BADARG', why, {argument = name, value = value and tostring(value) or nil})
end

function errors.no_such_job(jid) errors.raise('NOJOB', 'there is no such job', {jid = jid}) end

function errors.bad_state(job, why)
  errors.raise('BADSTATE', why, {jid = job.jid, state = job.state, queue = job.queue})
end

-- The error that a pcall caught, as a reply. Depending on the server, it is a table or a string
-- behind a position. Anything else is a bug and raised again.
function errors.from_pcall(caught)
  local text = type(caught) == 'table' and caught.err or caught
  local refused = string.match(text, '^user_script:%d+: (%u+ {.*)$')
    or string.match(text, '^%u+ {.*$')
  if not refused then error(caught) end
  return {err = refused}
end
