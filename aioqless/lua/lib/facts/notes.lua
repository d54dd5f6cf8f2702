-- notes: what follows for others from a change of a job. A change only notes it: lib/agenda does it
-- when the changes of the call are done.

-- The kinds are those of agenda.perform; `about` is what that one needs.
function notes.add(kind, about)
  local list = call.notes or {}
  call.notes = list
  list[#list + 1] = {kind = kind, about = about}
end
