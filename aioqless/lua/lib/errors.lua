-- errors: say no, before anything is written.

-- Ends the script with the error `CODE {json}`; `fields` are what the caller may want to look at.
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

function errors.bad_state(job, why) errors.raise('BADSTATE', why, {jid = job.jid, state = job.state, queue = job.queue}) end

-- The refusal that a pcall caught, as a reply. Servers differ in whether they hand out its table or a text with a position
-- before it. Anything else that was caught is a mistake and goes on its way.
function errors.from_pcall(caught)
  local text = type(caught) == 'table' and caught.err or caught
  local refused = string.match(text, '^user_script:%d+: (%u+ {.*)$') or string.match(text, '^%u+ {.*$')
  if not refused then error(caught) end
  return {err = refused}
end
