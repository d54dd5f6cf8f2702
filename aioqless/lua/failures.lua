-- failures: failure groups at a glance: how many, the latest, and since when there are so many.
--
-- @rest    names    string        at most 100 are looked at
-- @flags   no-writes
-- @returns json                   [{group, total, latest: {jid, klass, queue, when, message} or {}, marks: [[rank, when]]}];
--                                 so many as a mark's rank have failed after its `when`. Of a message of more than 1,000 bytes the middle is left out

local glances = {}
for i = 1, math.min(#names, 100) do glances[i] = summaries.group(names[i]) end
return json.list(glances)
