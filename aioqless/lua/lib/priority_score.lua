-- priority_score: the one place where the sign of a priority is turned.
-- Callers count as the specification does: negative runs sooner.  Redis holds what live clients expect: higher runs sooner.

-- From the caller's to the stored, and back.  Zero stays `0`, not `-0`.
function priority_score.negate(number)
  if number == 0 then return 0 end
  return -number
end

-- Where a job stands in `-work`: by priority, and within one by when it got there.
function priority_score.compute(stored, since) return stored - since / 10000000000 end

-- Since when a job of such a score has been there; nil for one that was put before all others.
function priority_score.read_since(score, stored)
  local since = (stored - score) * 10000000000
  return since >= 0 and since < math.huge and since or nil
end
