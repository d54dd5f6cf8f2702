-- notes: what follows for others from a change of a job, so that no change needs to know another.
-- The kinds are those of lib/agenda/agenda.lua; `about` is what that one needs.

-- Do it at the end of this call: what other qless clients do in the call, too.
function notes.add(kind, about)
  local list = call.notes or {}
  call.notes = list
  list[#list + 1] = {kind = kind, about = about}
end

-- Store it: the client that made this call sends `agenda` next, or a tick does it if that was
-- killed. `due`: when, if not at once.
function notes.store(kind, about, due)
  call.has_stored_notes = true
  redis.call('ZADD', keys.agenda(), due or 0, cjson.encode({kind = kind, about = about}))
end

-- Look for what clients have left that were killed: the reply of this call says it.
function notes.find_stored()
  call.has_stored_notes = redis.call('EXISTS', keys.agenda()) == 1
end
