-- priority_score: the sign of priorities, and the order of waiting jobs.
-- Callers use negative for sooner, as the specification does; Redis stores higher for sooner, as
-- live clients expect.

-- Convert from the caller's sign to the stored one, or back. Zero stays `0`, not `-0`.
function priority_score.negate(number)
  if number == 0 then return 0 end
  return -number
end

-- The score in `-work`: by priority, then by when the job got there.
function priority_score.compute(stored, since) return stored - since / 10000000000 end

-- Seconds by which two times must differ at least for scores of a priority to tell them apart.
function priority_score.compute_gap(stored)
  local _, exponent = math.frexp(math.abs(stored) + 0.25)  -- of its scores
  return math.ldexp(15000000000, exponent - 53)
end

-- Since when a job with this score has waited; nil for one that was put before all others.
function priority_score.read_since(score, stored)
  local since = (stored - score) * 10000000000
  return since >= 0 and since < math.huge and since or nil
end
