-- call_outcomes: how called jobs have ended, as their parents get it.

-- Store how a child has ended, if another qless client has ended it. Return whether it has.
function call_outcomes.note_outcome(job, name, entry, now)
  local outcome = call_outcomes.look(steps.read_child(entry).jid)
  if outcome then call_outcomes.store_outcome(job, name, outcome, now) end
  return outcome
end

-- How a job has ended that another qless client may have ended; nil if it hasn't.
function call_outcomes.look(jid)
  local f = redis.call('HMGET', keys.job(jid), 'state', 'failure')
  if f[1] == 'failed' then
    local failure = json.parse_object(f[2])
    return call_outcomes.encode_failure(jid, json.to_text(failure.group or ''),
      json.to_text(failure.message or ''))
  end
  local text = (not f[1] or f[1] == 'complete') and results.read(jid)
  if text or f[1] == 'complete' then return call_outcomes.encode_result(jid, text) end
  return not f[1] and call_outcomes.encode_failure(jid, 'canceled', 'the job was canceled') or nil
end

function call_outcomes.encode_result(jid, text)
  return '{"jid":' .. cjson.encode(jid) .. ',"result":' .. (text or 'null') .. '}'
end

function call_outcomes.encode_failure(jid, group, message)
  return '{"jid":' .. cjson.encode(jid) .. ',"group":' .. cjson.encode(group) .. ',"message":'
    .. cjson.encode(message) .. '}'
end

function call_outcomes.store_outcome(job, name, outcome, now)
  step_entries.replace(job, 'call', 'called', name, outcome, now)
end
