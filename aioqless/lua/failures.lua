-- failures: summaries of failure groups: size, latest job, and marks of growth over time.
--
-- @rest    names    string        at most 100 are read
-- @flags   no-writes
-- @returns json                   [{group, total, latest: {jid, klass, queue, when, message} or {},
--                                 marks: [[rank, when]]}]; `rank` jobs have failed since `when`.
--                                 Messages of more than 1,000 bytes are cut in the middle

local glances = {}
for i = 1, math.min(#names, 100) do glances[i] = summaries.group(names[i]) end
return json.list(glances)
