-- notes: what follows for others from a change of a job, so that no change needs to know another.
-- The kinds are those of lib/agenda/agenda.lua; `about` is what that one needs.

-- Do it at the end of this call: what other qless clients do in the call, too.
function notes.add(kind, about)
  local list = call.notes or {}
  call.notes = list
  list[#list + 1] = {kind = kind, about = about}
end

-- Store it: the client that made this call sends `agenda` next. If that was killed or refused,
-- an idle worker's next pop or a tick does it. The same note is stored once.
function notes.store(kind, about)
  call.has_stored_notes = true
  redis.call('ZADD', keys.agenda(), 0, notes.encode(kind, about))
end

-- Store it for later: a tick does it then. Another time replaces the one that it had.
function notes.schedule(kind, about, due)
  redis.call('ZADD', keys.agenda(), due, notes.encode(kind, about))
end

-- Store it for later, or for earlier than it was stored for.
function notes.schedule_earlier(kind, about, due)
  redis.call('ZADD', keys.agenda(), 'LT', due, notes.encode(kind, about))
end

function notes.remove(kind, about) redis.call('ZREM', keys.agenda(), notes.encode(kind, about)) end

-- A note as it is stored: the same text each time.
function notes.encode(kind, about)
  return '{"kind":"' .. kind .. '","about":' .. cjson.encode(about) .. '}'
end

-- Look for what is due, and was left by clients that were killed or by calls that had enough to do:
-- the reply of this call says it.
function notes.find_stored(now)
  if notes.is_due(now) then call.has_stored_notes = true end
end

function notes.is_due(now) return redis.call('ZCOUNT', keys.agenda(), '-inf', now) > 0 end
