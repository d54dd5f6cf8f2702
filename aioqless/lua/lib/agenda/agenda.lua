-- agenda: do what the changes of this call have noted (facts/notes.lua). Each command that may note
-- something ends with this.

local PORTION = 200  -- jobs to which policies are applied

-- Policies of jobs whose dependency has failed may concern any number of jobs: the next ticks
-- continue after a portion.
function agenda.run(now)
  now = now or clock.now()
  local done, left, has_policies = 0, PORTION, false
  repeat
    while call.notes[done + 1] do
      done = done + 1
      local note = call.notes[done]
      has_policies = has_policies or note.kind == 'policies'
      agenda.perform(note.kind, note.about, now)
    end
    local cost = has_policies and left > 0 and failed_dependencies.run_next(now, left) or 0
    left = left - cost
  until cost == 0 and not call.notes[done + 1]
  if has_policies and left <= 0 then failed_dependencies.announce_rest() end
end

function agenda.perform(kind, about, now)
  if kind == 'completed' then
    dependents.release_all(about, now)
    if presence.has('deferred') then dependents.run_deferred(now) end
  elseif kind == 'deferred' then
    dependents.run_deferred(now)
  elseif kind == 'unblocked' then
    dependents.release(about, now)
  elseif kind == 'stuck' then
    dependents.release_stuck(about, now)
  elseif kind == 'failed' then
    failure_reactions.react(about, now)
  elseif kind == 'child ended' then
    calls.end_child(about, now)
  elseif kind == 'orphans' then
    calls.cancel_orphans(now)
  elseif kind == 'set changed' then
    set_callbacks.react(about, now)
  elseif kind == 'failed expired' then
    failed_expiry.prune(now)
  end
end
