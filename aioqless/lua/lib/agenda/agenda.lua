-- agenda: do what changes have noted (lib/facts/notes.lua).

local PORTION = 100  -- jobs of a call, about

-- What is done at the end of the call that noted it.
function agenda.run(now)
  now = now or clock.now()
  local done = 0
  while call.notes[done + 1] do
    done = done + 1
    local note = call.notes[done]
    if note.kind == 'completed' then
      dependents.release_all(note.about, now)
    elseif note.kind == 'unblocked' then
      dependents.release(note.about, now)
    elseif note.kind == 'stuck' then
      dependents.release_stuck(note.about, now)
    end
  end
  call.notes = nil
end

-- What is stored and due; for a caller that gives no time, only what is due at once. Each note
-- disappears in the script that does it, so it is done once; the rest of what is too much for a
-- call is left to ticks.
function agenda.run_stored(now)
  local left, last = PORTION, clock.is_used() and 0 or now
  repeat
    local text = redis.call('ZRANGE', keys.agenda(), '-inf', last, 'BYSCORE', 'LIMIT', 0, 1)[1]
    if not text then return end
    redis.call('ZREM', keys.agenda(), text)
    local note = cjson.decode(text)
    left = left - agenda.perform(note.kind, note.about, now, left)
    if call.notes then agenda.run(now) end
  until left <= 0
  if notes.is_due(last) then redis.call('PUBLISH', keys.ticks_channel(), '') end
end

-- Return how many jobs it was about, at least 1.
function agenda.perform(kind, about, now, most)
  if kind == 'links' then return dependents.run(about, now, most) end
  if kind == 'policies' then return failed_dependencies.run(about, now, most) end
  if kind == 'worker gone' then return lost_workers.put_back(about, now, most) end
  if kind == 'review set' then return review.review_set(about, now, most) end
  if kind == 'review failures' then return review.review_failures(now, most) end
  if kind == 'review statistics' then return stats_pruning.run(now, most) end
  if kind == 'review steps' then
    review.review_steps(about, now)
  elseif kind == 'orphan' then
    calls.cancel_orphan(about, now)
  elseif kind == 'failed' then
    failure_reactions.react(about, now)
  elseif kind == 'child ended' then
    calls.end_child(about, now)
  elseif kind == 'set changed' then
    set_callbacks.react(about, now)
  elseif kind == 'failed expired' then
    failed_expiry.delete(about, now)
  end
  return 1
end
